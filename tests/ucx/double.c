/* SPDX-License-Identifier: MIT */
/* netlib/double.h for UCX. */
#include "netlib/double.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/ucx/ucx.h"
#include "transport/ucx/ucx_abi.h"

#define WORKERS 8
#define REQUESTS 4096

struct packet {
	struct packet *next;
	size_t header_bytes, bytes;
	uint64_t attr;
	unsigned char *header, *data;
};

struct ucx_worker {
	int number, fd;
	struct ucx_am_handler handler;
	struct packet *queue;
	bool armed;
};

struct ucx_ep {
	struct ucx_ep *next;
	struct ucx_worker *worker;
	int to;
	void (*error)(void *arg, struct ucx_ep *ep, ucx_status status);
	void *arg;
	ucx_status failing; /* to be reported by the worker's next progress */
	bool failed;
};

struct request {
	struct ucx_ep *ep;
	void (*done)(void *request, ucx_status status, void *arg);
	void *arg;
	struct ucx_worker *closing; /* ep_close: its worker */
};

struct double_faults double_faults;
bool double_locked;
unsigned double_sends;

static struct ucx_worker *workers[WORKERS];
static struct ucx_ep *endpoints;
static struct request *held[REQUESTS];
static int held_count, live;
static uint64_t random_state = 1;

static bool fails(const char *name)
{
	if (double_locked) {
		fprintf(stderr, "%s with the lock held\n", name);
		abort();
	}
	double_faults.calls++;
	if (double_faults.fail_call == 0 || --double_faults.fail_call > 0)
		return false;
	double_faults.failed = name;
	return true;
}

static void get_version(unsigned *major, unsigned *minor, unsigned *release)
{
	*major = UCX_API_MAJOR;
	*minor = UCX_API_MINOR;
	*release = 0;
}

static const char *get_version_string(void)
{
	return "1.12.0";
}

static const char *status_string(ucx_status status)
{
	static char text[32];

	snprintf(text, sizeof(text), "status %d", status);
	return text;
}

static ucx_status config_read(const char *prefix, const char *file, struct ucx_config **config)
{
	(void)prefix;
	(void)file;
	if (fails("config_read"))
		return UCX_ERR_NO_DEVICE;
	live++;
	*config = malloc(1);
	return UCX_OK;
}

static void config_release(struct ucx_config *config)
{
	live--;
	free(config);
}

static ucx_status init(unsigned major, unsigned minor, const struct ucx_params *params, const struct ucx_config *config,
		       struct ucx_context **context)
{
	if (major != UCX_API_MAJOR || minor != UCX_API_MINOR || !config || !(params->features & UCX_FEATURE_AM))
		abort();
	if (fails("init"))
		return UCX_ERR_NO_DEVICE;
	live++;
	*context = malloc(1);
	return UCX_OK;
}

static void cleanup(struct ucx_context *context)
{
	live--;
	free(context);
}

static ucx_status worker_create(struct ucx_context *context, const struct ucx_worker_params *params, struct ucx_worker **worker)
{
	int n = 0;

	(void)context;
	if (params->thread_mode != UCX_THREAD_MODE_SERIALIZED)
		abort();
	if (fails("worker_create"))
		return UCX_ERR_NO_DEVICE;
	while (workers[n])
		n++;
	*worker = workers[n] = calloc(1, sizeof(**worker));
	workers[n]->number = n;
	workers[n]->fd = eventfd(0, EFD_NONBLOCK);
	live++;
	return UCX_OK;
}

static void worker_destroy(struct ucx_worker *worker)
{
	for (struct ucx_ep **at = &endpoints; *at;) { /* as UCX does with those that are left */
		struct ucx_ep *ep = *at;

		if (ep->worker != worker) {
			at = &ep->next;
			continue;
		}
		*at = ep->next;
		free(ep);
		live--;
	}
	for (int i = 0; i < held_count; i++) {
		struct request *r = held[i];

		if (r && r->closing == worker) {
			held[i] = NULL;
			r->done(r, UCX_ERR_CANCELED, r->arg);
		}
	}
	while (worker->queue) {
		struct packet *p = worker->queue;

		worker->queue = p->next;
		free(p->header);
		free(p->data);
		free(p);
	}
	close(worker->fd);
	workers[worker->number] = NULL;
	free(worker);
	live--;
}

static ucx_status worker_query(struct ucx_worker *worker, struct ucx_worker_attr *attr)
{
	if (!(attr->field_mask & UCX_WORKER_ATTR_ADDRESS_FLAGS) || attr->address_flags != UCX_WORKER_ADDRESS_NET_ONLY)
		abort();
	if (fails("worker_query"))
		return UCX_ERR_NO_MEMORY;
	attr->address = malloc(sizeof(int));
	memcpy(attr->address, &worker->number, sizeof(int));
	attr->address_length = sizeof(int);
	live++;
	return UCX_OK;
}

static void release_address(struct ucx_worker *worker, void *address)
{
	(void)worker;
	free(address);
	live--;
}

static ucx_status set_am_handler(struct ucx_worker *worker, const struct ucx_am_handler *handler)
{
	if (fails("set_am_handler"))
		return UCX_ERR_NO_DEVICE;
	worker->handler = *handler;
	return UCX_OK;
}

static ucx_status worker_get_efd(struct ucx_worker *worker, int *fd)
{
	if (fails("worker_get_efd"))
		return UCX_ERR_NO_DEVICE;
	*fd = worker->fd;
	return UCX_OK;
}

static void worker_signal(struct ucx_worker *w)
{
	uint64_t one = 1;

	if (write(w->fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static ucx_status worker_arm(struct ucx_worker *worker)
{
	uint64_t n;

	if (double_faults.busy || worker->queue)
		return UCX_ERR_BUSY;
	if (read(worker->fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		abort();
	worker->armed = true;
	if (double_faults.loud)
		worker_signal(worker);
	return UCX_OK;
}

static unsigned worker_progress(struct ucx_worker *w)
{
	unsigned events = 0;
	struct packet *p = w->queue;

	if (p) {
		struct ucx_am_recv_param param = {.recv_attr = p->attr};

		w->queue = p->next;
		w->handler.cb(w->handler.arg, p->header, p->header_bytes, p->data, p->bytes, &param);
		free(p->header);
		free(p->data);
		free(p);
		events++;
	}
	for (struct ucx_ep *ep = endpoints; ep; ep = ep->next) {
		ucx_status status = ep->failing;

		if (ep->worker != w || !status || w->queue)
			continue;
		ep->failing = UCX_OK;
		ep->failed = true;
		ep->error(ep->arg, ep, status);
		events++;
	}
	for (int i = 0; i < held_count; i++) {
		struct request *r = held[i];

		if (r && r->closing == w) {
			held[i] = NULL;
			r->done(r, UCX_OK, r->arg);
			events++;
		}
	}
	return events;
}

static ucx_status ep_create(struct ucx_worker *worker, const struct ucx_ep_params *params, struct ucx_ep **ep)
{
	if (params->err_mode != UCX_ERR_MODE_PEER)
		abort();
	if (fails("ep_create"))
		return UCX_ERR_UNREACHABLE;
	*ep = calloc(1, sizeof(**ep));
	(*ep)->worker = worker;
	memcpy(&(*ep)->to, params->address, sizeof(int));
	(*ep)->error = params->err_handler.cb;
	(*ep)->arg = params->err_handler.arg;
	(*ep)->next = endpoints;
	endpoints = *ep;
	live++;
	return UCX_OK;
}

static struct request *request_new(struct ucx_ep *ep, const struct ucx_request_param *param)
{
	struct request *r = calloc(1, sizeof(*r));

	if (held_count == REQUESTS)
		abort();
	r->ep = ep;
	r->done = param->send;
	r->arg = param->user_data;
	held[held_count++] = r;
	live++;
	return r;
}

static void *ep_close(struct ucx_ep *ep, const struct ucx_request_param *param)
{
	struct ucx_ep **at = &endpoints;
	struct ucx_worker *w = ep->worker;
	struct request *r;

	if (double_locked) {
		fprintf(stderr, "ep_close with the lock held\n");
		abort();
	}
	for (int i = 0; i < held_count; i++) {
		if (!held[i] || held[i]->ep != ep)
			continue;
		if (!(param->flags & UCX_EP_CLOSE_FORCE))
			abort(); /* it would never end */
		r = held[i];
		held[i] = NULL;
		r->done(r, UCX_ERR_CANCELED, r->arg);
	}
	while (*at != ep)
		at = &(*at)->next;
	*at = ep->next;
	free(ep);
	live--;
	if (!double_faults.slow_close)
		return NULL;
	r = request_new(NULL, param);
	r->closing = w;
	return r;
}

void double_inject(int worker, const void *header, size_t header_bytes, const void *data, size_t bytes, bool whole)
{
	struct ucx_worker *w = workers[worker];
	struct packet *p = calloc(1, sizeof(*p)), **at = &w->queue;

	p->header = malloc(header_bytes + 1);
	p->data = malloc(bytes + 1);
	memcpy(p->header, header, header_bytes);
	if (bytes)
		memcpy(p->data, data, bytes);
	p->header_bytes = header_bytes;
	p->bytes = bytes;
	p->attr = whole ? 0 : UCX_AM_RECV_RNDV;
	while (*at) {
		random_state = random_state * 6364136223846793005u + 1442695040888963407u;
		if (double_faults.shuffle && random_state >> 62 == 0)
			break;
		at = &(*at)->next;
	}
	p->next = *at;
	*at = p;
	worker_signal(w);
}

static void *am_send(struct ucx_ep *ep, unsigned id, const void *header, size_t header_bytes, const void *buffer, size_t count,
		     const struct ucx_request_param *param)
{
	const uint32_t needed = UCX_OP_CALLBACK | UCX_OP_USER_DATA | UCX_OP_FLAGS;

	if (id != 0 || (param->op_attr_mask & needed) != needed || param->flags != UCX_AM_SEND_EAGER)
		abort();
	double_sends++;
	if (double_faults.send)
		return (void *)(intptr_t)double_faults.send;
	if (!double_faults.lose && workers[ep->to])
		double_inject(ep->to, header, header_bytes, buffer, count, true);
	return double_faults.hold ? request_new(ep, param) : NULL;
}

static void request_free(void *request)
{
	free(request);
	live--;
}

void double_release(void)
{
	while (held_count > 0) {
		struct request *r = held[--held_count];

		held[held_count] = NULL;
		if (r)
			r->done(r, UCX_OK, r->arg);
	}
}

void double_fail(int worker, int status)
{
	for (struct ucx_ep *ep = endpoints; ep; ep = ep->next) {
		if (ep->to == worker && !ep->failed)
			ep->failing = (ucx_status)status;
	}
}

int double_live(void)
{
	return live;
}

void double_reset(void)
{
	if (live) {
		fprintf(stderr, "%d objects of the double are left\n", live);
		abort();
	}
	double_faults = (struct double_faults){0};
	double_locked = false;
	double_sends = 0;
	held_count = 0;
}

static const struct ucx_library library = {
	.get_version = get_version,
	.get_version_string = get_version_string,
	.status_string = status_string,
	.config_read = config_read,
	.config_release = config_release,
	.init = init,
	.cleanup = cleanup,
	.worker_create = worker_create,
	.worker_destroy = worker_destroy,
	.worker_query = worker_query,
	.release_address = release_address,
	.set_am_handler = set_am_handler,
	.worker_get_efd = worker_get_efd,
	.worker_arm = worker_arm,
	.worker_progress = worker_progress,
	.ep_create = ep_create,
	.ep_close = ep_close,
	.am_send = am_send,
	.request_free = request_free,
};

const struct transport_ops *const double_transport = &transport_ucx_ops;
void *const double_test = (void *)(uintptr_t)&library;
const char *const double_opening[] = {"config_read", "init", "worker_create", "set_am_handler", "worker_get_efd", "worker_query", NULL};
const char *const double_connecting = "ep_create";
const bool double_reports_ends = true;
const struct double_loss double_losses[] = {
	{UCX_ERR_CONNECTION_RESET, -ECONNRESET},
	{UCX_ERR_ENDPOINT_TIMEOUT, -ECONNRESET},
	{UCX_ERR_UNREACHABLE, -EHOSTUNREACH},
	{-3, -ECONNRESET},
	{UCX_ERR_NO_MEMORY, -ENOMEM},
	{0, 0},
};
