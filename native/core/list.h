/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_LIST_H
#define IBVX_CORE_LIST_H
/*
 * list: intrusive circular doubly linked lists.  A link that is in no list points to itself.
 */
#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define LIST_ITEM(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_append(struct list *head, struct list *item)
{
	item->prev = head->prev;
	item->next = head;
	head->prev->next = item;
	head->prev = item;
}

/* Also right for an item that is in no list. */
static inline void list_remove(struct list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	list_init(item);
}

/* The same, for an item that mostly is in no list. */
static inline void list_drop(struct list *item)
{
	if (item->next != item)
		list_remove(item);
}

#endif
