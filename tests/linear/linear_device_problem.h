// Tensors for tests of layers on the device, a layer's answers to them, and what they should be.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "numsim/backend/device_context.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"
#include "numsim/linear/linear.h"
#include "numsim/quantize/quantize.h"
#include "tests/linear/linear_problem.h"

namespace numsim {

// Which of the three results of a step are asked for beside y.
struct Wanted {
  bool dx = true;
  bool dw = true;
};

inline const FormatSpec& Bf16() {
  static const FormatSpec spec = ParseFormat("bf16").spec;
  return spec;
}

inline EncodePlan Bf16Plan() { return MakeEncodePlan(Bf16(), Rounding(), Overflow::kNonsaturate); }

inline void RoundToBf16(naive::Matrix& m) { FakeQuantize(Bf16Plan(), m.data, m.data); }

// `problem` with the tensors of a 16-bit training.
inline LinearProblem InBf16(LinearProblem problem) {
  for (naive::Matrix* m : {&problem.x, &problem.w, &problem.g}) RoundToBf16(*m);
  return problem;
}

// A matrix on the device, stored as float32 or bf16.
class DeviceTensor {
 public:
  // The values of m, which for bf16 lie on its grid.
  DeviceTensor(const naive::Matrix& m, Element element) : DeviceTensor(m.rows, m.cols, element) {
    Convert(CopyAt(m.data, ThreadPlace()).View(), buffer_.View());
  }
  // To be written: NaN everywhere.
  DeviceTensor(size_t rows, size_t cols, Element element) : buffer_(ThreadPlace(), element) {
    buffer_.Renew(rows, cols);
    Spoil();
  }

  void Spoil() {
    const FloatSpan m = buffer_.View();
    device_memory::FillBytes(m.data, 0xFF, m.Bytes(), ThreadStream());
  }
  FloatSpan matrix() { return buffer_.View(); }
  naive::Matrix Read() const {
    const ConstFloatSpan m = buffer_.View();
    return {m.rows, m.cols, ToVector(m)};
  }

 private:
  FloatBuffer buffer_;
};

// How tensors lie on the device.
struct StoredElements {
  Element tensors = Element::kBfloat16;  // x, w, g, y, dx
  Element dw = Element::kFloat32;
};

// A problem on the device, with room for its results.
struct DeviceProblem {
  explicit DeviceProblem(const LinearProblem& p, StoredElements stored = {})
      : x(p.x, stored.tensors),
        w(p.w, stored.tensors),
        g(p.g, stored.tensors),
        y(p.g.rows, p.g.cols, stored.tensors),
        dx(p.x.rows, p.x.cols, stored.tensors),
        dw(p.w.rows, p.w.cols, stored.dw) {}

  DeviceTensor x, w, g, y, dx, dw;
  LinearSaved saved;
};

inline void ForwardOnDevice(Linear& layer,
                            DeviceProblem& p,
                            RandomStream random = {},
                            LinearObserver* observer = nullptr) {
  layer.Forward(p.x.matrix(), p.w.matrix(), p.y.matrix(), p.saved, random, observer, true);
}

inline void BackwardOnDevice(Linear& layer,
                             DeviceProblem& p,
                             RandomStream random = {},
                             Wanted wanted = {},
                             LinearObserver* observer = nullptr) {
  const FloatSpan nothing;
  layer.Backward(p.g.matrix(),
                 p.w.matrix(),
                 p.saved,
                 wanted.dx ? p.dx.matrix() : nothing,
                 wanted.dw ? p.dw.matrix() : nothing,
                 random,
                 observer);
}

inline naive::Results ResultsOf(const DeviceProblem& p) {
  return {p.y.Read(), p.dx.Read(), p.dw.Read()};
}

inline naive::Results StepOnDevice(Linear& layer,
                                   const LinearProblem& problem,
                                   RandomStream random = {},
                                   Wanted wanted = {},
                                   StoredElements stored = {}) {
  DeviceProblem p(problem, stored);
  ForwardOnDevice(layer, p, random);
  BackwardOnDevice(layer, p, random, wanted);
  return ResultsOf(p);
}

// Returns the results of Linear on the host, rounded to how the device stores them. Those that are
// not wanted stay NaN.
inline naive::Results ExpectedOnDevice(Linear& on_host,
                                       const LinearProblem& problem,
                                       RandomStream random = {},
                                       Wanted wanted = {},
                                       StoredElements stored = {}) {
  naive::Results out = Step(on_host, problem, random);
  if (stored.tensors == Element::kBfloat16) {
    for (naive::Matrix* m : {&out.y, &out.dx}) RoundToBf16(*m);
  }
  if (stored.dw == Element::kBfloat16) RoundToBf16(out.dw);
  if (!wanted.dx) std::ranges::fill(out.dx.data, std::nanf(""));
  if (!wanted.dw) std::ranges::fill(out.dw.data, std::nanf(""));
  return out;
}

}  // namespace numsim
