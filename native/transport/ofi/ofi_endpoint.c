/* SPDX-License-Identifier: MIT */
#include "transport/ofi/ofi_endpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/netlib/netlib.h"
#include "transport/netlib/netlib_packet.h"
#include "transport/ofi/ofi_library.h"

#define ENDPOINT_NAME_MAX 512u
#define ENDPOINT_CQ_SENDS 4096u
#define ENDPOINT_ALIGNMENT 4096u

/* Turns of progress before an endpoint over registered memory is closed: at most, and how many find nothing, each with a pause. */
#define DRAIN_TURNS 1000
#define DRAIN_QUIET_TURNS 20
#define DRAIN_PAUSE_NS (500 * CLOCK_NS_PER_US)

/* An address: the format of names, the provider, the name. */
struct ofi_endpoint_address {
	uint32_t format;
	char text[]; /* provider, ended by 0, and name */
};

static int ofi_endpoint_error(const struct ofi *o, int rc, const char *what)
{
	return error_set(rc == -OFI_ENOMEM ? -ENOMEM : -ENODEV, "%s: %s (provider %s)", what, o->api->strerror(-rc),
			 o->info->fabric_attr->prov_name);
}

static int ofi_endpoint_open_cq(struct ofi *o)
{
	uint64_t sends = (uint64_t)o->netlib.env.size * o->netlib.credit;
	struct ofi_cq_attr attr = {.size = OFI_RECEIVES + (sends < ENDPOINT_CQ_SENDS ? sends : ENDPOINT_CQ_SENDS),
				   .format = OFI_CQ_FORMAT_MSG,
				   .wait_obj = OFI_WAIT_FD};
	int rc = o->domain->ops->cq_open(o->domain, &attr, &o->cq, NULL);

	if (rc == -OFI_ENOSYS) {
		attr.wait_obj = OFI_WAIT_NONE;
		rc = o->domain->ops->cq_open(o->domain, &attr, &o->cq, NULL);
	}
	if (rc != 0)
		return ofi_endpoint_error(o, rc, "fi_cq_open");
	if (attr.wait_obj == OFI_WAIT_FD) {
		rc = o->cq->fid.ops->control(&o->cq->fid, OFI_GETWAIT, &o->netlib.fd);
		if (rc != 0)
			return ofi_endpoint_error(o, rc, "fi_control(FI_GETWAIT)");
	}
	return 0;
}

static int ofi_endpoint_make(struct ofi *o)
{
	struct ofi_av_attr av = {.type = OFI_AV_TABLE, .count = (size_t)o->netlib.env.size};
	int rc = o->domain->ops->av_open(o->domain, &av, &o->av, NULL);

	if (rc != 0)
		return ofi_endpoint_error(o, rc, "fi_av_open");
	rc = o->domain->ops->endpoint(o->domain, o->info, &o->ep, NULL);
	if (rc != 0)
		return ofi_endpoint_error(o, rc, "fi_endpoint");
	rc = o->ep->fid.ops->bind(&o->ep->fid, &o->av->fid, 0);
	if (rc == 0)
		rc = o->ep->fid.ops->bind(&o->ep->fid, &o->cq->fid, OFI_SEND | OFI_RECV);
	if (rc != 0)
		return ofi_endpoint_error(o, rc, "fi_ep_bind");
	rc = o->ep->fid.ops->control(&o->ep->fid, OFI_ENABLE, NULL);
	return rc != 0 ? ofi_endpoint_error(o, rc, "fi_enable") : 0;
}

static int ofi_endpoint_register(struct ofi *o, int which, void *memory, size_t bytes)
{
	int rc = o->domain->mr->reg(&o->domain->fid, memory, bytes, OFI_SEND | OFI_RECV, 0, (uint64_t)which + 1, 0, &o->mr[which], NULL);

	if (rc == 0 && (o->info->domain_attr->mr_mode & OFI_MR_ENDPOINT)) {
		rc = o->mr[which]->fid.ops->bind(&o->mr[which]->fid, &o->ep->fid, 0);
		if (rc == 0)
			rc = o->mr[which]->fid.ops->control(&o->mr[which]->fid, OFI_ENABLE, NULL);
	}
	return rc != 0 ? ofi_endpoint_error(o, rc, "fi_mr_reg (enough memory may be locked: ulimit -l?)") : 0;
}

static int ofi_endpoint_make_buffers(struct ofi *o)
{
	size_t bytes, left = o->info->rx_attr->size;
	int rc = 0;

	o->receive_count = left > 0 && left < OFI_RECEIVES ? left : OFI_RECEIVES;
	o->receive_bytes = sizeof(struct ofi_receive) + o->netlib.payload_max;
	bytes = (o->receive_count * o->receive_bytes + ENDPOINT_ALIGNMENT - 1) / ENDPOINT_ALIGNMENT * ENDPOINT_ALIGNMENT;
	o->receives = aligned_alloc(ENDPOINT_ALIGNMENT, bytes);
	if (!o->receives)
		return error_set(-ENOMEM, "no memory for packets, %zu bytes", bytes);
	for (size_t i = 0; i < o->receive_count; i++)
		o->unposted[o->unposted_count++] = (struct ofi_receive *)(o->receives + i * o->receive_bytes);
	if (!(o->info->domain_attr->mr_mode & OFI_MR_LOCAL))
		return 0;
	rc = netlib_packet_fix(&o->netlib);
	if (rc == 0)
		rc = ofi_endpoint_register(o, 0, o->netlib.fixed_slots, o->netlib.fixed_bytes);
	if (rc == 0)
		rc = ofi_endpoint_register(o, 1, o->receives, bytes);
	return rc;
}

static int ofi_endpoint_make_address(struct ofi *o)
{
	const char *provider = o->info->fabric_attr->prov_name;
	size_t head = sizeof(struct ofi_endpoint_address) + strlen(provider) + 1, bytes = ENDPOINT_NAME_MAX;
	struct ofi_endpoint_address *a = calloc(1, head + bytes);
	int rc;

	if (!a)
		return error_set(-ENOMEM, "no memory for an address");
	a->format = o->info->addr_format;
	memcpy(a->text, provider, strlen(provider) + 1);
	rc = o->ep->cm->getname(&o->ep->fid, (char *)a + head, &bytes);
	if (rc != 0) {
		free(a);
		return ofi_endpoint_error(o, rc, "fi_getname");
	}
	o->netlib.address = a;
	o->netlib.address_bytes = head + bytes;
	return 0;
}

bool ofi_endpoint_matches(const struct netlib *f, const void *address, size_t bytes)
{
	size_t head = sizeof(struct ofi_endpoint_address) + strlen(((const struct ofi *)f)->info->fabric_attr->prov_name) + 1;

	return bytes == f->address_bytes && memcmp(address, f->address, head) == 0;
}

const void *ofi_endpoint_name(const void *address)
{
	const struct ofi_endpoint_address *a = address;

	return a->text + strlen(a->text) + 1;
}

static void ofi_endpoint_fit(struct ofi *o)
{
	struct netlib *f = &o->netlib;
	size_t most = o->info->ep_attr->max_msg_size, payload = OFI_PAYLOAD_MAX;

	if (strstr(o->info->fabric_attr->prov_name, "ofi_rxm"))
		payload = OFI_PAYLOAD_RXM;
	if (most > sizeof(struct netlib_head) + NETLIB_SMALL_BYTES && most - sizeof(struct netlib_head) < payload)
		payload = most - sizeof(struct netlib_head);
	netlib_fit_packets(f, payload);
	/* what a provider gets that nobody has posted a buffer for it keeps in memory of its own, without a limit */
	f->credit = NETLIB_SMALL_SLOTS + f->large_slots;
}

/* With the environment and the signals as the loader has set them. */
static int ofi_endpoint_start(struct ofi *o)
{
	int rc = o->netlib.env.test ? 0 : ofi_library_open(&o->library);

	if (rc == 0)
		rc = ofi_library_choose(o->api, o->netlib.env.settings, &o->info);
	if (rc < 0)
		return rc;
	ofi_endpoint_fit(o);
	rc = o->api->fabric(o->info->fabric_attr, &o->fabric, NULL);
	if (rc != 0)
		return ofi_endpoint_error(o, rc, "fi_fabric");
	rc = o->fabric->ops->domain(o->fabric, o->info, &o->domain, NULL);
	if (rc != 0)
		return ofi_endpoint_error(o, rc, "fi_domain");
	rc = ofi_endpoint_open_cq(o);
	if (rc == 0)
		rc = ofi_endpoint_make(o);
	if (rc == 0)
		rc = ofi_endpoint_make_buffers(o);
	return rc == 0 ? ofi_endpoint_make_address(o) : rc;
}

int ofi_endpoint_open(struct netlib *f)
{
	struct ofi *o = ofi_of(f);
	struct ofi_library_environment e;
	struct loader loader;
	int rc, changed;

	ofi_library_environment(&e, f->env.size);
	rc = loader_begin(&loader, e.variable, e.count);
	if (rc < 0)
		return rc;
	rc = ofi_endpoint_start(o);
	changed = loader_end(&loader);
	if (changed)
		log_warn(f->env.log, "ofi: the library had changed %d signal actions, which are restored", changed);
	if (rc == 0)
		log_debug(f->env.log, "ofi: provider %s, domain %s", o->info->fabric_attr->prov_name, o->info->domain_attr->name);
	return rc;
}

static void ofi_endpoint_end(struct ofi_fid *fid)
{
	fid->ops->close(fid);
}

/* Libfabric's rxm over verbs takes in its connections' queue once more while it closes the endpoint, and posts the buffer of a packet that
 * it finds there to a connection that it has closed already (its issue 11828): a segmentation fault. So what peers sent last is taken in
 * before. */
static void ofi_endpoint_drain(struct ofi *o)
{
	struct timespec pause = {0, DRAIN_PAUSE_NS};
	struct netlib *f = &o->netlib;

	for (int turns = 0, quiet = 0; turns < DRAIN_TURNS && quiet < DRAIN_QUIET_TURNS; turns++) {
		if (f->ops->progress(f, TRANSPORT_BUDGET)) {
			quiet = 0;
			continue;
		}
		quiet++;
		nanosleep(&pause, NULL);
	}
}

void ofi_endpoint_close(struct netlib *f)
{
	struct ofi *o = ofi_of(f);

	if (o->ep && o->mr[0] && f->used > 0) /* registered memory: no provider over sockets */
		ofi_endpoint_drain(o);
	if (o->ep)
		ofi_endpoint_end(&o->ep->fid);
	for (int i = 0; i < 2; i++) {
		if (o->mr[i])
			ofi_endpoint_end(&o->mr[i]->fid);
	}
	if (o->cq)
		ofi_endpoint_end(&o->cq->fid);
	if (o->av)
		ofi_endpoint_end(&o->av->fid);
	if (o->domain)
		ofi_endpoint_end(&o->domain->fid);
	if (o->fabric)
		ofi_endpoint_end(&o->fabric->fid);
	if (o->info)
		o->api->freeinfo(o->info);
	o->ep = NULL;
	o->mr[0] = o->mr[1] = NULL;
	o->cq = NULL;
	o->av = NULL;
	o->domain = NULL;
	o->fabric = NULL;
	o->info = NULL;
	free(o->receives);
	free(f->address);
	o->receives = NULL;
	f->address = NULL;
}
