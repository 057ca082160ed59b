// Operands for tests of the layers, and a layer's answers to them.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "numsim/linear/linear.h"
#include "numsim/random/distributions.h"
#include "tests/reference/linear/naive_linear.h"

namespace numsim {

// Names of all kinds.
inline std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const LinearKind& kind : LinearKinds()) names.emplace_back(kind.name);
  return names;
}

// A matrix of normal draws whose rows and columns differ in size, so that scales by row, by column,
// by block and by tensor all differ.
inline naive::Matrix Uneven(size_t rows, size_t cols, uint64_t stream) {
  naive::Matrix m{rows, cols, std::vector<float>(rows * cols)};
  FillNormal({.seed = 17, .stream = stream}, 0, m.data);
  for (size_t i = 0; i < m.data.size(); ++i) {
    const int row = static_cast<int>(i / cols % 7), col = static_cast<int>(i % cols % 5);
    m.data[i] *= (1.0f + 0.37f * static_cast<float>(row)) * std::ldexp(1.0f, col - row);
  }
  return m;
}

struct LinearProblem {
  naive::Matrix x, w, g;

  LinearShape Shape() const { return {x.rows, x.cols, w.rows}; }
};

inline LinearProblem UnevenProblem(LinearShape shape) {
  return {Uneven(shape.tokens, shape.in, 1),
          Uneven(shape.out, shape.in, 2),
          Uneven(shape.tokens, shape.out, 3)};
}

// Outputs begin as NaN: what is not written shows.
inline naive::Matrix Unwritten(size_t rows, size_t cols) {
  return {rows, cols, std::vector<float>(rows * cols, std::nanf("1"))};
}

// One Forward and one Backward.
inline naive::Results Step(Linear& layer,
                           const LinearProblem& p,
                           RandomStream random = {},
                           LinearObserver* observer = nullptr) {
  const LinearShape shape = p.Shape();
  naive::Results out{Unwritten(shape.tokens, shape.out),
                     Unwritten(shape.tokens, shape.in),
                     Unwritten(shape.out, shape.in)};
  LinearSaved saved;
  layer.Forward(HostMatrix(p.x.data, shape.X()),
                HostMatrix(p.w.data, shape.W()),
                out.y.data,
                saved,
                random,
                observer);
  layer.Backward(p.g.data, p.w.data, saved, out.dx.data, out.dw.data, random, observer);
  return out;
}

inline naive::Results Step(const LinearOptions& options,
                           const LinearProblem& p,
                           RandomStream random = {}) {
  Linear layer(MakeLinearRecipe(options));
  return Step(layer, p, random);
}

// Whether all bits agree; any NaN is like any other.
inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) return false;
  }
  return true;
}

inline bool SameBits(const naive::Results& a, const naive::Results& b) {
  return SameBits(a.y.data, b.y.data) && SameBits(a.dx.data, b.dx.data) &&
         SameBits(a.dw.data, b.dw.data);
}

// Names the first element that differs.
inline void ExpectSameBits(const char* name,
                           const naive::Matrix& actual,
                           const naive::Matrix& expected) {
  ASSERT_EQ(actual.data.size(), expected.data.size()) << name;
  for (size_t i = 0; i < actual.data.size(); ++i) {
    const float a = actual.data[i], e = expected.data[i];
    if (std::isnan(a) && std::isnan(e)) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(e))
        << name << "(" << i / expected.cols << ", " << i % expected.cols << ") is " << a << ", not "
        << e;
  }
}

inline void ExpectSameBits(const naive::Results& actual, const naive::Results& expected) {
  ExpectSameBits("Y", actual.y, expected.y);
  ExpectSameBits("dX", actual.dx, expected.dx);
  ExpectSameBits("dW", actual.dw, expected.dw);
}

}  // namespace numsim
