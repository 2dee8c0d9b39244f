/* Hands every frame to the network stack: what an XDP program costs that does nothing. */
#include "test_frame.h"

SEC("xdp") int pass(struct xdp_md *context)
{
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
