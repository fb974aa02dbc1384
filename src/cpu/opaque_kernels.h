// Every opaque kernel, by family. The table in opaque_table.cpp names the operators.
#pragma once

#include "cpu/opaque.h"

namespace redfuser {

// opaque_conv.cpp, opaque_conv_transpose.cpp
void run_conv(OpaqueCall& call);
void run_conv_transpose(OpaqueCall& call);

// opaque_integer_products.cpp
void run_conv_integer(OpaqueCall& call);
void run_qlinear_conv(OpaqueCall& call);
void run_qlinear_matmul(OpaqueCall& call);

// opaque_pool.cpp
void run_max_pool(OpaqueCall& call);
void run_average_pool(OpaqueCall& call);
void run_lp_pool(OpaqueCall& call);

// opaque_scan.cpp
void run_cumsum(OpaqueCall& call);

// opaque_select.cpp, opaque_unique.cpp
void run_nonzero(OpaqueCall& call);
void run_compress(OpaqueCall& call);
void run_unique(OpaqueCall& call);

// opaque_nms.cpp
void run_non_max_suppression(OpaqueCall& call);

// opaque_scatter.cpp
void run_scatter_nd(OpaqueCall& call);
void run_scatter_elements(OpaqueCall& call);

// opaque_recurrent.cpp
void run_rnn(OpaqueCall& call);
void run_gru(OpaqueCall& call);
void run_lstm(OpaqueCall& call);

// opaque_resize.cpp
void run_resize(OpaqueCall& call);
void run_upsample(OpaqueCall& call);

}  // namespace redfuser
