// Attention of one head of one sequence in float32, on the best SIMD target. For attention.cc.
#pragma once

#include <cstddef>

namespace numsim {

// Rows of a head: element (t, d) is data[t * stride + d].
struct HeadRows {
  const float* data;
  size_t stride;
};
struct HeadRowsOut {
  float* data;
  size_t stride;
};

struct HeadShape {
  size_t length, head_dim;
  bool causal;
  float scale;  // of the scores
};

// Floats of scratch that a call needs.
size_t AttendScratch(const HeadShape& shape);
size_t AttendGradientScratch(const HeadShape& shape);

// log_sums: element t at t * log_stride.
void Attend(const HeadShape& shape,
            HeadRows q,
            HeadRows k,
            HeadRows v,
            float* log_sums,
            size_t log_stride,
            HeadRowsOut out,
            float* scratch);

struct HeadGradientInputs {
  HeadRows g, q, k, v, out;
  const float* log_sums;
  size_t log_stride;
};
void AttendGradient(const HeadShape& shape,
                    const HeadGradientInputs& in,
                    HeadRowsOut dq,
                    HeadRowsOut dk,
                    HeadRowsOut dv,
                    float* scratch);

}  // namespace numsim
