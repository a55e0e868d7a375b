/* SPDX-License-Identifier: MIT */
#include "bootstrap/card_service.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/proof.h"
#include "base/thread.h"
#include "bootstrap/deadline.h"
#include "bootstrap/message.h"
#include "bootstrap/munge.h"

#define SERVICE_HEADER 8
#define SERVICE_ASK "ask1"
#define SERVICE_CARD "card"
#define SERVICE_NONCE 16
#define SERVICE_PREFIX (4 + SERVICE_NONCE)
#define SERVICE_FRAME (SERVICE_HEADER + MUNGE_TEXT_BYTES)
#define SERVICE_ACCEPTS_PER_TURN 16

static const uint8_t service_magic[4] = {'i', 'b', 'c', 's'};

struct visitor {
	int fd; /* -1: the slot is free */
	int64_t deadline;
	size_t got;
	uint8_t frame[SERVICE_FRAME];
};

struct card_service {
	pthread_t thread;
	int stop_fd;
	struct address_listener listener;
	char job[CARD_SERVICE_JOB_BYTES];
	char card[CARD_TEXT_BYTES];
	struct visitor visitors[CARD_SERVICE_VISITORS];
};

/* The length of the credential that a header announces, or -EPROTO. */
static int service_length(const uint8_t header[SERVICE_HEADER])
{
	uint32_t len = message_get32(header + 4);

	return memcmp(header, service_magic, 4) != 0 || len == 0 || len >= MUNGE_TEXT_BYTES ? -EPROTO : (int)len;
}

/* A frame around a credential with this payload: its length, or -errno. */
static int service_make(uint8_t frame[SERVICE_FRAME], const char *kind, const uint8_t nonce[SERVICE_NONCE], const char *text)
{
	char payload[SERVICE_PREFIX + CARD_TEXT_BYTES + 1];
	size_t len = strlen(text);
	int err;

	memcpy(payload, kind, 4);
	memcpy(payload + 4, nonce, SERVICE_NONCE);
	snprintf(payload + SERVICE_PREFIX, sizeof(payload) - SERVICE_PREFIX, "%s", text);
	err = munge_seal(payload, SERVICE_PREFIX + len, (char *)frame + SERVICE_HEADER);
	if (err)
		return err;
	len = strlen((char *)frame + SERVICE_HEADER);
	memcpy(frame, service_magic, 4);
	message_put32(frame + 4, (uint32_t)len);
	return (int)(SERVICE_HEADER + len);
}

/* Opens a credential of that kind: its nonce and text.  0; -EACCES, -EPROTO: with text. */
static int service_open(const char *credential, const char *kind, uint8_t nonce[SERVICE_NONCE], char text[CARD_TEXT_BYTES])
{
	uint8_t payload[SERVICE_PREFIX + CARD_TEXT_BYTES];
	size_t len = 0;
	int err = munge_unseal(credential, payload, sizeof(payload) - 1, &len);

	if (err)
		return err;
	if (len < SERVICE_PREFIX || memcmp(payload, kind, 4) != 0 || memchr(payload + SERVICE_PREFIX, '\0', len - SERVICE_PREFIX))
		return error_set(-EPROTO, "munge: a credential of this user, but not one of ibvdev's");
	payload[len] = '\0';
	memcpy(nonce, payload + 4, SERVICE_NONCE);
	memcpy(text, payload + SERVICE_PREFIX, len - SERVICE_PREFIX + 1);
	return 0;
}

static void visitor_drop(struct visitor *v)
{
	if (v->fd >= 0)
		close(v->fd);
	v->fd = -1;
}

/* A whole question is there.  The answer is small: it fits into the socket's buffer, or the visitor does without. */
static void visitor_answer(const struct card_service *s, struct visitor *v)
{
	uint8_t nonce[SERVICE_NONCE], frame[SERVICE_FRAME];
	char job[CARD_TEXT_BYTES];
	int len;

	v->frame[v->got] = '\0';
	if (service_open((char *)v->frame + SERVICE_HEADER, SERVICE_ASK, nonce, job) < 0 || strcmp(job, s->job) != 0)
		return;
	len = service_make(frame, SERVICE_CARD, nonce, s->card);
	if (len > 0)
		send(v->fd, frame, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void visitor_on_readable(const struct card_service *s, struct visitor *v)
{
	size_t want = SERVICE_HEADER;
	ssize_t n;

	if (v->got >= SERVICE_HEADER)
		want += (size_t)service_length(v->frame);
	n = recv(v->fd, v->frame + v->got, want - v->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	v->got += n > 0 ? (size_t)n : 0;
	if (n <= 0 || (v->got >= SERVICE_HEADER && service_length(v->frame) < 0)) {
		visitor_drop(v);
	} else if (v->got > SERVICE_HEADER && v->got == want) {
		visitor_answer(s, v);
		visitor_drop(v);
	}
}

/* A free slot, or the oldest one. */
static struct visitor *service_slot(struct card_service *s)
{
	struct visitor *oldest = &s->visitors[0];

	for (int i = 0; i < CARD_SERVICE_VISITORS; i++) {
		if (s->visitors[i].fd < 0)
			return &s->visitors[i];
		if (s->visitors[i].deadline < oldest->deadline)
			oldest = &s->visitors[i];
	}
	visitor_drop(oldest);
	return oldest;
}

static void service_accept(struct card_service *s, int listen_fd)
{
	for (int i = 0; i < SERVICE_ACCEPTS_PER_TURN; i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct visitor *v;

		/* Without descriptors accept would fail again at once. */
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
			nanosleep(&(struct timespec){.tv_nsec = 10 * CLOCK_NS_PER_MS}, NULL);
		if (fd < 0)
			return;
		v = service_slot(s);
		v->fd = fd;
		v->got = 0;
		v->deadline = deadline_after_ms(CARD_SERVICE_VISIT_MS);
	}
}

/* False: stop. */
static bool service_turn(struct card_service *s)
{
	struct pollfd polls[1 + ADDRESS_MAX + CARD_SERVICE_VISITORS] = {{.fd = s->stop_fd, .events = POLLIN}};
	struct pollfd *listeners = polls + 1, *visitors = listeners + s->listener.count;
	int wait_ms = -1;

	for (int i = 0; i < s->listener.count; i++)
		listeners[i] = (struct pollfd){.fd = s->listener.fds[i], .events = POLLIN};
	for (int i = 0; i < CARD_SERVICE_VISITORS; i++) {
		struct visitor *v = &s->visitors[i];
		int left = v->fd >= 0 ? deadline_left_ms(v->deadline) : 0;

		if (v->fd >= 0 && left == 0)
			visitor_drop(v);
		if (v->fd >= 0 && (wait_ms < 0 || left < wait_ms))
			wait_ms = left;
		visitors[i] = (struct pollfd){.fd = v->fd, .events = POLLIN};
	}
	if (poll(polls, (nfds_t)(visitors + CARD_SERVICE_VISITORS - polls), wait_ms) < 0)
		return errno == EINTR || errno == EAGAIN;
	for (int i = 0; i < CARD_SERVICE_VISITORS; i++)
		if (visitors[i].revents)
			visitor_on_readable(s, &s->visitors[i]);
	for (int i = 0; i < s->listener.count; i++)
		if (listeners[i].revents)
			service_accept(s, s->listener.fds[i]);
	return !polls[0].revents;
}

static void *service_thread(void *arg)
{
	while (service_turn(arg))
		;
	return NULL;
}

int card_service_start(struct card_service **out, const struct address_listener *listener, const char *job, const struct card *card)
{
	struct card_service *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return error_set(-ENOMEM, "no memory");
	for (int i = 0; i < CARD_SERVICE_VISITORS; i++)
		s->visitors[i].fd = -1;
	s->listener = *listener;
	snprintf(s->job, sizeof(s->job), "%s", job);
	card_print(card, s->card);
	s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->stop_fd < 0) {
		err = error_sys(-errno, "an eventfd");
		free(s);
		return err;
	}
	err = thread_start(&s->thread, service_thread, s);
	if (err) {
		close(s->stop_fd);
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

void card_service_stop(struct card_service *s)
{
	if (!s)
		return;
	eventfd_write(s->stop_fd, 1);
	pthread_join(s->thread, NULL);
	for (int i = 0; i < CARD_SERVICE_VISITORS; i++)
		visitor_drop(&s->visitors[i]);
	address_unlisten(&s->listener);
	close(s->stop_fd);
	free(s);
}

/* Sends or receives all of it. */
static int ask_transfer(int fd, uint8_t *bytes, size_t len, bool out, int64_t deadline)
{
	while (len > 0) {
		ssize_t n = out ? send(fd, bytes, len, MSG_NOSIGNAL) : recv(fd, bytes, len, 0);
		struct pollfd wait = {.fd = fd, .events = out ? POLLOUT : POLLIN};

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n == 0) {
			return error_set(-EACCES, "what listens there closed the connection: another job's, another "
						  "user's, or not rank 0");
		} else if (errno != EAGAIN && errno != EINTR) {
			return error_sys(-errno, "asking for rank 0's card");
		} else if (deadline_left_ms(deadline) == 0) {
			return error_set(-ETIMEDOUT, "what listens there does not answer");
		} else {
			poll(&wait, 1, deadline_left_ms(deadline));
		}
	}
	return 0;
}

static int ask_on(int fd, const char *job, struct card *card, int64_t deadline)
{
	uint8_t frame[SERVICE_FRAME], nonce[SERVICE_NONCE], back[SERVICE_NONCE];
	char text[CARD_TEXT_BYTES];
	int len, err = proof_random(nonce, sizeof(nonce));

	if (err)
		return err;
	len = service_make(frame, SERVICE_ASK, nonce, job);
	err = len < 0 ? len : ask_transfer(fd, frame, (size_t)len, true, deadline);
	if (!err)
		err = ask_transfer(fd, frame, SERVICE_HEADER, false, deadline);
	if (err)
		return err;
	len = service_length(frame);
	if (len < 0)
		return error_set(len, "what listens there is not rank 0");
	err = ask_transfer(fd, frame + SERVICE_HEADER, (size_t)len, false, deadline);
	if (err)
		return err;
	frame[SERVICE_HEADER + len] = '\0';
	err = service_open((char *)frame + SERVICE_HEADER, SERVICE_CARD, back, text);
	if (!err && memcmp(back, nonce, sizeof(nonce)) != 0)
		err = error_set(-EACCES, "what listens there answered another question than ours");
	return err ? err : card_parse(card, text);
}

int card_service_ask(const struct address_list *where, const char *job, struct card *card, int64_t deadline)
{
	const uint32_t all = (UINT32_C(1) << where->count) - 1;
	uint32_t tried = 0;
	int err = -EHOSTUNREACH, which = 0;

	while (tried != all) {
		int64_t patience = deadline_earlier(deadline, deadline_after_ms(CARD_SERVICE_VISIT_MS));
		int fd = address_connect_any(where, &tried, patience, &which);

		if (fd < 0)
			return error_sys(fd, "connecting to rank 0's node");
		err = ask_on(fd, job, card, patience);
		close(fd);
		if (!err)
			return 0;
	}
	return err;
}
