// The modes named after Hopper's tensor cores, and what cuBLASLt does to their sums, against what
// an H200 gave (recorded/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm.h"
#include "numsim/io/npy.h"
#include "tests/gemm/library_store.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

std::filesystem::path RecordedDirectory() {
  const char* root = std::getenv("NUMSIM_SOURCE_DIR");
  return std::filesystem::path(root != nullptr ? root : ".") / "tests/gemm/recorded";
}

// RULE.FORMAT-A.FORMAT-B.K, or with one name more
struct RecordedCase {
  explicit RecordedCase(const std::string& name) {
    const size_t a = name.find('.'), b = name.find('.', a + 1), k = name.find('.', b + 1);
    mode = ParseAccumulationMode(name.substr(0, a));
    format_a = ParseFormat(name.substr(a + 1, b - a - 1)).spec;
    format_b = ParseFormat(name.substr(b + 1, k - b - 1)).spec;
    left = ReadNpy(RecordedDirectory() / (name + "-a.npy"));
    right = ReadNpy(RecordedDirectory() / (name + "-b.npy"));
    out = ReadNpy(RecordedDirectory() / (name + "-out.npy"));
    if (HasScales(name)) {
      scales_a = ReadNpy(RecordedDirectory() / (name + "-sa.npy"));
      scales_b = ReadNpy(RecordedDirectory() / (name + "-sb.npy"));
    }
  }

  static bool HasScales(const std::string& name) {
    return std::filesystem::exists(RecordedDirectory() / (name + "-sa.npy"));
  }

  AccumulationMode mode;
  FormatSpec format_a, format_b;
  Array left, right, out;
  Array scales_a, scales_b;  // no elements: there are none
};

// The cases whose names have that many parts between points.
std::vector<std::string> RecordedNames(int parts) {
  constexpr std::string_view kEnd = "-out.npy";
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(RecordedDirectory())) {
    std::string name = entry.path().filename().string();
    if (!name.ends_with(kEnd)) continue;
    name.resize(name.size() - kEnd.size());
    if (std::count(name.begin(), name.end(), '.') + 1 == parts) names.push_back(name);
  }
  return names;
}

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

std::vector<float> Sums(const RecordedCase& recorded) {
  std::vector<float> out(recorded.out.Elements());
  Gemm(OperandOf(recorded.left, recorded.format_a),
       OperandOf(recorded.right, recorded.format_b),
       recorded.mode,
       out);
  return out;
}

size_t Differences(const RecordedCase& recorded) {
  const std::vector<float> out = Sums(recorded);
  size_t count = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    count += std::memcmp(&out[i], recorded.out.bytes.data() + 4 * i, 4) != 0;
  }
  return count;
}

TEST(RecordedGemm, HopperRulesGiveEveryBitOfAnH200) {
  const std::vector<std::string> names = RecordedNames(4);
  EXPECT_EQ(names.size(), 15u);
  for (const std::string& name : names) {
    const RecordedCase recorded(name);
    WithEachBackend([&] { EXPECT_EQ(Differences(recorded), 0u) << name; });
  }
}

// The record tells the modes apart: a neighbour of the right one fails on it.
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
    recorded.mode = ParseAccumulationMode(row.wrong);
    EXPECT_GT(Differences(recorded), 0u) << row.recorded << " under " << row.wrong;
  }
}

// Element i of the scales of rows or of the one for all; 1 without any.
float ScaleOf(const Array& scales, size_t i) {
  if (scales.bytes.empty()) return 1;
  return scales.Data<float>()[scales.Elements() == 1 ? 0 : i];
}

// The kind of results that the name says were stored: scaled sums as float32, int32 or in a format
// of 16 bits.
std::vector<uint32_t> Stored(const RecordedCase& recorded,
                             const std::string& name,
                             LibraryScaling scaling) {
  std::vector<float> sums = Sums(recorded);
  const size_t columns = recorded.right.shape[0];
  for (size_t i = 0; i < sums.size(); ++i) {
    const float sa = ScaleOf(recorded.scales_a, i / columns);
    const float sb = ScaleOf(recorded.scales_b, i % columns);
    sums[i] = ScaledSum(scaling, sums[i], sa, sb);
  }
  if (name.ends_with("bf16")) return ResultCodes(kBf16, sums);
  if (name.ends_with("fp16")) return ResultCodes(kFp16, sums);
  if (!name.ends_with("int32")) return ResultBits(sums);
  std::vector<uint32_t> integers;
  for (const float x : sums) integers.push_back(static_cast<uint32_t>(static_cast<int32_t>(x)));
  return integers;
}

size_t StoredDifferences(const std::string& name, LibraryScaling scaling) {
  const RecordedCase recorded(name);
  const std::vector<uint32_t> want = Stored(recorded, name, scaling);
  const size_t bytes = ElementBytes(recorded.out.type);
  const FormatSpec& format = bytes == 4 ? kFp32 : name.ends_with("bf16") ? kBf16 : kFp16;
  size_t count = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, recorded.out.bytes.data() + bytes * i, bytes);
    count += (name.ends_with("int32") ? bits : WithOneNan(format, bits)) != want[i];
  }
  return count;
}

// RULE.FORMAT-A.FORMAT-B.K.STORE
TEST(RecordedGemm, ScaledAndRoundedResultsAreThoseOfAnH200) {
  const std::vector<std::string> names = RecordedNames(5);
  EXPECT_EQ(names.size(), 23u);
  for (const std::string& name : names) {
    const bool rows = name.find(".rows") != std::string::npos;
    const LibraryScaling scaling = rows ? kHopperRowScaling : kHopperTensorScaling;
    EXPECT_EQ(StoredDifferences(name, scaling), 0u) << name;
  }
}

// The record tells ways to scale apart.
TEST(RecordedGemm, AnotherOrderOfTheScalesDiffers) {
  EXPECT_GT(StoredDifferences("hopper-fp8-fast.e4m3fn.e4m3fn.272.rows", kHopperTensorScaling), 0u);
  EXPECT_GT(StoredDifferences("hopper-fp8-fast.e4m3fn.e4m3fn.272.rows", LibraryScaling::kLeftFirst),
            0u);
  EXPECT_GT(StoredDifferences("hopper-fp8-fast.e4m3fn.e4m3fn.272.tensor", kHopperRowScaling), 0u);
  EXPECT_GT(StoredDifferences("hopper-fp8-fast.e4m3fn.e4m3fn.272.tensor", LibraryScaling::kOnce),
            0u);
}

}  // namespace
}  // namespace numsim
