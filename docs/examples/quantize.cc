// Quantises two matrices row by row to e4m3fn, with stochastic rounding of 16 bits, and multiplies
// them under three accumulation modes. quantize.c is the same program in C and prints the same.
//
//   g++ -std=c++20 quantize.cc $(pkg-config --cflags --libs numsim-cxx)
#include "numsim/quantize.h"

#include <cstddef>
#include <cstdio>
#include <span>
#include <vector>

#include "numsim/gemm.h"

namespace {

constexpr numsim::MatrixShape kShapeX{2, 64}, kShapeW{3, 64};

// Returns numbers between -50/16 and 50/16, times 8^r in row r, so that each row needs its own
// scale.
std::vector<float> Values(numsim::MatrixShape shape, size_t step) {
  std::vector<float> values;
  float factor = 1.0f / 16;
  for (size_t r = 0; r < shape.rows; ++r, factor *= 8) {
    for (size_t c = 0; c < shape.cols; ++c) {
      const size_t number = (r * shape.cols + c + 1) * step % 101;
      values.push_back((static_cast<float>(number) - 50) * factor);
    }
  }
  return values;
}

void PrintScales(const char* name, std::span<const float> scales) {
  std::printf("scales of %s:", name);
  for (const float scale : scales) std::printf(" %.9g", static_cast<double>(scale));
  std::printf("\n");
}

void Run() {
  const std::vector<float> x = Values(kShapeX, 37), w = Values(kShapeW, 59);

  // From arrays to codes and scales. The scales map the largest |x| of a row to the largest value
  // of the format. The two operands take their random bits from different streams.
  numsim::QuantizeOptions options{
      .format = numsim::ParseFormat("e4m3fn").spec,
      .rounding = {.mode = numsim::RoundingMode::kStochastic, .random_bits = 16},
      .layout = numsim::ParseScaleLayout("row"),
      .random = {.stream = {.seed = 1, .stream = 0}}};
  const numsim::QuantizedMatrix codes_x = numsim::Quantize(HostMatrix(x, kShapeX), options);
  options.random.stream.stream = 1;
  const numsim::QuantizedMatrix codes_w = numsim::Quantize(HostMatrix(w, kShapeW), options);
  PrintScales("x", codes_x.Scales());
  PrintScales("w", codes_w.Scales());

  // And back: each code times its scale.
  std::vector<float> dequantized(x.size());
  numsim::Dequantize(codes_x, dequantized);
  for (size_t i = 0; i < 4; ++i) {
    std::printf("x[%zu] = %.9g, code %02X, dequantised %.9g\n",
                i,
                static_cast<double>(x[i]),
                static_cast<unsigned>(codes_x.Codes8()[i]),
                static_cast<double>(dequantized[i]));
  }

  // X W^T, 2 x 3, from the codes and scales.
  const numsim::GemmOperand a = numsim::AsOperand(codes_x, /*transposed=*/false);
  const numsim::GemmOperand b = numsim::AsOperand(codes_w, /*transposed=*/false);
  for (const char* mode : {"exact", "fp32", "hopper-fp8"}) {
    std::vector<float> product(kShapeX.rows * kShapeW.rows);
    numsim::Gemm(a, b, numsim::ParseAccumulationMode(mode), product);
    std::printf("%s:", mode);
    for (const float element : product) std::printf(" %.9g", static_cast<double>(element));
    std::printf("\n");
  }
}

}  // namespace

int main() {
  try {
    Run();
  } catch (const numsim::Error& error) {  // e.g. a matrix whose size is not that of its shape
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
