// Tensors for tests of layers on the device, a layer's answers to them, and what they should be.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "numsim/backend/device.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"
#include "numsim/linear/linear_device.h"
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

// A bf16 matrix on the device.
class DeviceTensor {
 public:
  // The values of m, which lie on the grid.
  DeviceTensor(const naive::Matrix& m, DeviceStream& stream) : rows_(m.rows), cols_(m.cols) {
    std::vector<uint16_t> codes(m.data.size());
    Encode(Bf16Plan(), m.data, std::span(codes));
    codes_ = OnDevice(std::span<const uint16_t>(codes), stream);
    stream.Wait();
  }
  // To be written: NaN everywhere.
  DeviceTensor(size_t rows, size_t cols, DeviceStream& stream)
      : rows_(rows), cols_(cols), codes_(rows * cols) {
    Spoil(stream);
  }

  void Spoil(DeviceStream& stream) {
    device_memory::FillBytes(codes_.data(), 0xFF, 2 * rows_ * cols_, stream);
  }
  MutableDeviceMatrix matrix() {
    return {codes_.data(), DeviceElement::kBfloat16, {.rows = rows_, .cols = cols_}};
  }
  naive::Matrix Read(DeviceStream& stream) const {
    const std::vector<uint16_t> codes = OnHost(codes_.span(), stream);
    naive::Matrix m{rows_, cols_, std::vector<float>(codes.size())};
    Decode(Bf16(), std::span<const uint16_t>(codes), m.data);
    return m;
  }

 private:
  size_t rows_, cols_;
  DeviceArray<uint16_t> codes_;
};

// A problem on the device, with room for its results.
struct DeviceProblem {
  DeviceProblem(const LinearProblem& p, DeviceStream& stream)
      : x(p.x, stream),
        w(p.w, stream),
        g(p.g, stream),
        y(p.g.rows, p.g.cols, stream),
        dx(p.x.rows, p.x.cols, stream),
        dw(p.w.rows, p.w.cols, stream) {}

  DeviceTensor x, w, g, y, dx, dw;
};

inline void ForwardOnDevice(DeviceLinear& layer,
                            DeviceProblem& p,
                            DeviceStream& stream,
                            RandomStream random = {},
                            LinearObserver* observer = nullptr) {
  layer.Forward(p.x.matrix(), p.w.matrix(), p.y.matrix(), stream, random, observer);
}

inline void BackwardOnDevice(DeviceLinear& layer,
                             DeviceProblem& p,
                             DeviceStream& stream,
                             RandomStream random = {},
                             Wanted wanted = {},
                             LinearObserver* observer = nullptr) {
  const MutableDeviceMatrix nothing;
  layer.Backward(p.g.matrix(),
                 p.x.matrix(),
                 p.w.matrix(),
                 wanted.dx ? p.dx.matrix() : nothing,
                 wanted.dw ? p.dw.matrix() : nothing,
                 stream,
                 random,
                 observer);
}

inline naive::Results ResultsOf(const DeviceProblem& p, DeviceStream& stream) {
  return {p.y.Read(stream), p.dx.Read(stream), p.dw.Read(stream)};
}

inline naive::Results StepOnDevice(DeviceLinear& layer,
                                   const LinearProblem& problem,
                                   DeviceStream& stream,
                                   RandomStream random = {},
                                   Wanted wanted = {}) {
  DeviceProblem p(problem, stream);
  ForwardOnDevice(layer, p, stream, random);
  BackwardOnDevice(layer, p, stream, random, wanted);
  return ResultsOf(p, stream);
}

// The bf16 of what Linear gives under the same recipe; what is not wanted stays NaN.
inline naive::Results ExpectedOnDevice(const LinearRecipe& recipe,
                                       const LinearProblem& problem,
                                       RandomStream random = {},
                                       Wanted wanted = {}) {
  Linear layer(recipe);
  naive::Results out = Step(layer, problem, random);
  for (naive::Matrix* m : {&out.y, &out.dx, &out.dw}) RoundToBf16(*m);
  if (!wanted.dx) std::ranges::fill(out.dx.data, std::nanf(""));
  if (!wanted.dw) std::ranges::fill(out.dw.data, std::nanf(""));
  return out;
}

}  // namespace numsim
