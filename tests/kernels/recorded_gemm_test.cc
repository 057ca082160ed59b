// The rules named after Hopper's matrix units against what an H200 gave (recorded/README.md).
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/io/npy.h"
#include "numsim/kernels/gemm.h"
#include "tests/kernels/every_backend.h"

namespace numsim {
namespace {

std::filesystem::path RecordedDirectory() {
  const char* root = std::getenv("NUMSIM_SOURCE_DIR");
  return std::filesystem::path(root != nullptr ? root : ".") / "tests/kernels/recorded";
}

// RULE.FORMAT-A.FORMAT-B.K
struct RecordedCase {
  explicit RecordedCase(const std::string& name) {
    const size_t a = name.find('.'), b = name.find('.', a + 1), k = name.find('.', b + 1);
    rule = ParseAccumulator(name.substr(0, a));
    format_a = ParseFormat(name.substr(a + 1, b - a - 1)).spec;
    format_b = ParseFormat(name.substr(b + 1, k - b - 1)).spec;
    left = ReadNpy(RecordedDirectory() / (name + "-a.npy"));
    right = ReadNpy(RecordedDirectory() / (name + "-b.npy"));
    out = ReadNpy(RecordedDirectory() / (name + "-out.npy"));
  }

  Accumulator rule;
  FormatSpec format_a, format_b;
  Array left, right, out;
};

GemmOperand OperandOf(const Array& codes, const FormatSpec& format) {
  GemmOperand operand{.format = format, .rows = codes.shape[0], .inner = codes.shape[1]};
  const size_t n = operand.rows * operand.inner;
  if (format.StorageBytes() == 1) {
    operand.codes8 = {reinterpret_cast<const uint8_t*>(codes.bytes.data()), n};
  } else {
    operand.codes16 = {reinterpret_cast<const uint16_t*>(codes.bytes.data()), n};
  }
  return operand;
}

size_t Differences(const RecordedCase& recorded) {
  std::vector<float> out(recorded.out.shape[0] * recorded.out.shape[1]);
  Gemm(OperandOf(recorded.left, recorded.format_a),
       OperandOf(recorded.right, recorded.format_b),
       recorded.rule,
       out);
  size_t count = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    count += std::memcmp(&out[i], recorded.out.bytes.data() + 4 * i, 4) != 0;
  }
  return count;
}

TEST(RecordedGemm, HopperRulesGiveEveryBitOfAnH200) {
  constexpr std::string_view kEnd = "-out.npy";
  size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RecordedDirectory())) {
    std::string name = entry.path().filename().string();
    if (!name.ends_with(kEnd)) continue;
    name.resize(name.size() - kEnd.size());
    const RecordedCase recorded(name);
    ++cases;
    WithEachBackend([&] { EXPECT_EQ(Differences(recorded), 0u) << name; });
  }
  EXPECT_EQ(cases, 15u);
}

// The record tells the rules apart: a neighbour of the right one fails on it.
TEST(RecordedGemm, AnotherFractionChunkOrPromotionDiffers) {
  struct Row {
    const char* recorded;
    const char* wrong;
  };
  for (const Row& row : {Row{"hopper-fp8-fast.e4m3fn.e4m3fn.272", "trunc:12,32"},
                         Row{"hopper-fp8-fast.e4m3fn.e4m3fn.272", "trunc:14,32"},
                         Row{"hopper-fp8-fast.e4m3fn.e4m3fn.272", "trunc:13,16"},
                         Row{"hopper-fp8-fast.e4m3fn.e4m3fn.272", "hopper-fp8"},
                         Row{"hopper-fp8.e4m3fn.e4m3fn.272", "trunc:13,32,64"},
                         Row{"hopper-bf16.bf16.bf16.144", "trunc:24,16"},
                         Row{"hopper-fp16.fp16.fp16.144", "trunc:25,8"},
                         Row{"hopper-mma-fp8.e4m3fn.e4m3fn.160", "trunc:25,16,32"}}) {
    RecordedCase recorded(row.recorded);
    recorded.rule = ParseAccumulator(row.wrong);
    EXPECT_GT(Differences(recorded), 0u) << row.recorded << " under " << row.wrong;
  }
}

}  // namespace
}  // namespace numsim
