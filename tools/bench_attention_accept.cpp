// Attention beyond the usual: masks to both sides, mixed types, short windows.
#include "bench_attention.h"

namespace redfuser::tools {
namespace {

Attention of(const char* name, int64_t batch, int64_t heads, int64_t queries, int64_t keys,
             int64_t size) {
  Attention a{"accept", name, batch, heads, heads, queries, keys, size};
  return a;
}

std::vector<Attention> masked() {
  std::vector<Attention> all;
  Attention near = of("near512_8192", 1, 16, 8192, 8192, 64);
  near.radius = 512;
  all.push_back(near);
  near.name = "near512_8192_bf16_d128";
  near.size = 128;
  near.bfloat = true;
  all.push_back(near);
  Attention prefix = of("prefix_window_8192", 1, 16, 8192, 8192, 64);
  prefix.causal = true;
  prefix.window = 512;
  prefix.prefix = 4;
  all.push_back(prefix);
  prefix.name = "prefix_window_odd";
  prefix.queries = 700, prefix.keys = 1013;
  prefix.window = 90;
  all.push_back(prefix);
  Attention sink = of("sink_window_dc_32768", 1, 32, 1, 32768, 128);
  sink.window = 1024;
  sink.prefix = 4;
  all.push_back(sink);
  sink.name = "sink_window_dc_gqa_5000";
  sink.key_heads = 8;
  sink.keys = 5000;
  all.push_back(sink);
  Attention wide = of("near_large_head", 2, 4, 300, 333, 320);
  wide.radius = 40;
  wide.prefix = 3;
  all.push_back(wide);
  return all;
}

}  // namespace

std::vector<WorkloadMaker> accept_attention_workloads() {
  std::vector<WorkloadMaker> makers;
  for (const Attention& a : masked()) {
    makers.push_back({a.name, [a] { return attention_workload(a); }});
  }
  return makers;
}

}  // namespace redfuser::tools
