/* SPDX-License-Identifier: MIT */
#include "transport/verbs/qp.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/proof.h"

static int qp_modify(struct verbs_conn *c, struct ibv_qp_attr *attr, int mask, const char *to)
{
	int rc = c->verbs->api->modify_qp(c->qp, attr, mask);

	return rc ? error_sys(rc > 0 ? -rc : -errno, "the queue pair cannot be made %s", to) : 0;
}

struct ibv_qp *qp_make(struct verbs_conn *c, struct ibv_qp_init_attr *attr)
{
	const struct verbs_local *at = &c->verbs->locals[c->peer->local];
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .pkey_index = at->pkey_index,
				   .port_num = at->port,
				   .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, err;
	struct ibv_qp *qp = c->verbs->api->make_qp(c->device->pd, attr);

	if (!qp)
		return NULL;
	err = c->verbs->api->modify_qp(qp, &init, mask);
	if (!err)
		return qp;
	c->verbs->api->unmake_qp(qp);
	errno = err;
	return NULL;
}

static uint8_t qp_mtu(const struct verbs_conn *c, const struct ibv_port_attr *port)
{
	int64_t wanted = settings_int(c->verbs->env.settings, SETTING_VERBS_MTU);

	return (uint8_t)(wanted > 0 && wanted < (int64_t)port->active_mtu ? wanted : (int64_t)port->active_mtu);
}

int qp_describe(struct verbs_conn *c)
{
	const struct verbs_local *at = &c->verbs->locals[c->peer->local];
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint32_t psn;

	if (c->verbs->api->query_port(at->context, at->port, &port) || c->verbs->api->query_gid(at->context, at->port, at->gid_index, &gid))
		return error_set(-EIO, "port %u of %s cannot be queried", at->port, at->device);
	if (proof_random(&psn, sizeof(psn)) < 0)
		return -EIO;
	c->here = (struct qp_address){.qpn = c->qp->qp_num,
				      .psn = psn & 0xffffff,
				      .lid = port.lid,
				      .mtu = qp_mtu(c, &port),
				      .ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET};
	memcpy(c->here.gid, gid.raw, sizeof(c->here.gid));
	return 0;
}

int qp_connect(struct verbs_conn *c, const struct qp_address *there)
{
	const struct verbs_local *at = &c->verbs->locals[c->peer->local];
	int64_t level = settings_int(c->verbs->env.settings, SETTING_VERBS_SERVICE_LEVEL);
	int64_t class = settings_int(c->verbs->env.settings, SETTING_VERBS_TRAFFIC_CLASS);
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = there->mtu < c->here.mtu ? there->mtu : c->here.mtu,
		.dest_qp_num = there->qpn,
		.rq_psn = there->psn,
		.max_dest_rd_atomic = (uint8_t)c->device->reads_in,
		.min_rnr_timer = 12, /* 0.64 ms */
		/* RoCE has no LIDs: its packets are addressed by the global route header */
		.ah_attr = {.dlid = there->lid,
			    .sl = (uint8_t)(level > 0 ? level : 0),
			    .port_num = at->port,
			    .is_global = c->here.ethernet,
			    .grh = {.sgid_index = at->gid_index, .hop_limit = 64, .traffic_class = (uint8_t)(class > 0 ? class : 0)}},
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = connection_timeout_exponent(c->verbs),
				  .retry_cnt = CONNECTION_RETRIES,
				  .rnr_retry = CONNECTION_RNR_RETRIES,
				  .sq_psn = c->here.psn,
				  .max_rd_atomic = (uint8_t)c->queue[RMA_READ].max};
	int rc;

	if (there->ethernet != c->here.ethernet)
		return error_set(-EPROTO, "one side is Ethernet, the other InfiniBand");
	memcpy(rtr.ah_attr.grh.dgid.raw, there->gid, sizeof(there->gid));
	rc = qp_modify(c, &rtr,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			       IBV_QP_MIN_RNR_TIMER,
		       "ready to receive");
	if (rc < 0)
		return rc;
	return qp_modify(c, &rts,
			 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
			 "ready to send");
}
