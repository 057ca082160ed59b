#include "tests/reference/linear/naive_hadamard.h"

#include <bit>
#include <cmath>

namespace numsim::naive {
namespace {

std::vector<float> ByHalves(const std::vector<float>& x) {
  if (x.size() == 1) return x;
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  const std::vector<float> lower = ByHalves({x.begin(), middle});
  const std::vector<float> upper = ByHalves({middle, x.end()});
  std::vector<float> result;
  for (size_t i = 0; i < lower.size(); ++i) result.push_back(lower[i] + upper[i]);
  for (size_t i = 0; i < lower.size(); ++i) result.push_back(lower[i] - upper[i]);
  return result;
}

}  // namespace

Negated ByMask(uint16_t mask) {
  return [mask](size_t i) { return (mask >> (i % 16) & 1) != 0; };
}

Negated ByStream(RandomStream stream) {
  return [stream](size_t i) {
    // 256 elements share 16 blocks of four words, which have four fields of eight bits each.
    const size_t lane = i % 16, field = i / 16 % 4, word = i / 64;
    const auto words = RandomBlock(stream, lane);
    return (words[word] >> (8 * field + 7) & 1) != 0;
  };
}

std::vector<float> HadamardBlock(const std::vector<float>& block, const Negated& negated) {
  std::vector<float> x = block;
  for (size_t i = 0; i < x.size(); ++i) x[i] = negated(i) ? -x[i] : x[i];
  x = ByHalves(x);
  const auto factor = static_cast<float>(std::pow(static_cast<double>(x.size()), -0.5));
  for (float& y : x) {
    y *= factor;
    if (std::isnan(y)) y = std::bit_cast<float>(0x7FC00000u);
  }
  return x;
}

Matrix HadamardRows(const Matrix& in, size_t size, const Negated& negated) {
  Matrix out = in;
  for (size_t at = 0; at < in.data.size(); at += size) {
    const auto from = in.data.begin() + static_cast<std::ptrdiff_t>(at);
    const std::vector<float> block =
        HadamardBlock({from, from + static_cast<std::ptrdiff_t>(size)}, negated);
    std::copy(block.begin(), block.end(), out.data.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return out;
}

Matrix HadamardColumns(const Matrix& in, size_t size, const Negated& negated) {
  return Transposed(HadamardRows(Transposed(in), size, negated));
}

}  // namespace numsim::naive
