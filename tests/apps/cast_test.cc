// `numsim cast`: codes equal the library's scalar rule, element by element.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/rounding_modes.h"
#include "tests/apps/program.h"
#include "tests/support/special_values.h"

namespace numsim::apps {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Zeros, values, midpoints and their neighbours over all binades, overflows, infinities, NaN.
std::vector<float> AwkwardFloats() {
  std::vector<float> values = {0,
                               kInf,
                               kNaN,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::denorm_min(),
                               std::bit_cast<float>(0x7F800001u),
                               464,
                               std::nextafterf(464, 1000),
                               61440,
                               65519.996f,
                               65520,
                               127.5f,
                               0.78f};
  for (int exponent = -149; exponent <= 127; ++exponent) {
    for (const float m : {1.0f, 1.0625f, 1.125f, 1.1875f, 1.25f, 1.5f, 1.9375f}) {
      const float x = std::ldexp(m, exponent);
      values.insert(values.end(), {x, std::nextafterf(x, 0), std::nextafterf(x, kInf)});
    }
  }
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

uint32_t CodeAt(const Array& codes, size_t i) {
  switch (codes.type) {
    case ElementType::kU8:
      return codes.Data<uint8_t>()[i];
    case ElementType::kU16:
      return codes.Data<uint16_t>()[i];
    default:
      return codes.Data<uint32_t>()[i];
  }
}

ElementType TypeOf(const FormatSpec& format) {
  return format.Bits() <= 8    ? ElementType::kU8
         : format.Bits() <= 16 ? ElementType::kU16
                               : ElementType::kU32;
}

struct Conversion {
  std::string format;
  std::string mode = "rne";
  std::string overflow = "nonsaturate";
  std::string variant = "a";
  int bits = 32;
  uint64_t seed = 0;

  std::string Options() const {
    return fmt::format(
        "--format {} --rounding {} --overflow {} --sr-variant {} --sr-bits {} --seed {}",
        format,
        mode,
        overflow,
        variant,
        bits,
        seed);
  }
  EncodePlan Plan() const {
    return MakeEncodePlan(ParseFormat(format).spec,
                          {ParseRoundingMode(mode), ParseStochasticVariant(variant), bits},
                          ParseOverflow(overflow));
  }
};

class CastCommand : public ProgramTest {
 protected:
  // Casts in.npy and compares every code with the scalar rule on `values`.
  template <typename T>
  void ExpectCodes(const Conversion& c, const std::vector<T>& values) const {
    EXPECT_EQ(Output("cast in.npy out.npy " + c.Options()), "");
    const EncodePlan plan = c.Plan();
    const Array codes = GetNpy("out.npy");
    ASSERT_EQ(codes.type, TypeOf(plan.format)) << c.format;
    ASSERT_EQ(codes.Elements(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t random = RandomBits({c.seed, 0}, i, c.bits);
      uint32_t expected = 0;
      if constexpr (sizeof(T) == 8) {
        expected = EncodeF64(plan, std::bit_cast<uint64_t>(values[i]), random);
      } else {
        expected = EncodeF32(plan, std::bit_cast<uint32_t>(values[i]), random);
      }
      ASSERT_EQ(CodeAt(codes, i), expected) << c.Options() << " element " << i << " " << values[i];
    }
  }
};

const char* const kFormats[] = {"e4m3fn",
                                "e5m2",
                                "e4m3fnuz",
                                "e8m0fnu",
                                "e2m1fn",
                                "binary8p4ue",
                                "bnb-e4m3",
                                "int8",
                                "bf16",
                                "fp16",
                                "tf32",
                                "fp32",
                                "e3m5:inf=none,nan=all-ones"};

TEST_F(CastCommand, EqualsTheScalarRuleInEveryMode) {
  const std::vector<float> values = AwkwardFloats();
  PutNpy("in.npy", ElementType::kF32, values);
  for (const char* const format : kFormats) {
    for (const RoundingModeRow& row : kRoundingModes) {
      ExpectCodes({.format = format, .mode = std::string(row.name)}, values);
    }
  }
}

TEST_F(CastCommand, EqualsTheScalarRuleUnderEveryOverflowPolicy) {
  const std::vector<float> values = AwkwardFloats();
  PutNpy("in.npy", ElementType::kF32, values);
  for (const char* const format : kFormats) {
    for (const char* const overflow : {"saturate", "propagate"}) {
      for (const char* const mode : {"rne", "rtp"}) {
        ExpectCodes({.format = format, .mode = mode, .overflow = overflow}, values);
      }
    }
  }
}

TEST_F(CastCommand, EqualsTheScalarRuleForEveryStochasticVariantAndWidth) {
  const std::vector<float> values = AwkwardFloats();
  PutNpy("in.npy", ElementType::kF32, values);
  for (const char* const variant : {"a", "b", "c"}) {
    for (const int bits : {1, 8, 13, 32}) {
      ExpectCodes({.format = "e4m3fn", .mode = "sr", .variant = variant, .bits = bits, .seed = 77},
                  values);
    }
  }
}

TEST_F(CastCommand, DefaultsAreNearestEvenAndNonsaturate) {
  const std::vector<float> values = AwkwardFloats();
  PutNpy("in.npy", ElementType::kF32, values);
  Output("cast in.npy plain.npy --format e4m3fn");
  Output("cast in.npy named.npy --format e4m3fn --rounding rne --overflow nonsaturate --seed 0");
  EXPECT_EQ(Bytes(Path("plain.npy")), Bytes(Path("named.npy")));
}

TEST_F(CastCommand, TakesEveryFloat16) {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  PutNpy("in.npy", ElementType::kF16, halves);
  const FormatSpec fp16 = FindFormat("fp16")->spec;
  std::vector<float> values;
  for (uint32_t code = 0; code < 65536; ++code) values.push_back(Decode(fp16, code));
  for (const char* const format : {"e4m3fn", "e5m2", "bf16", "int8"}) {
    ExpectCodes({.format = format}, values);
    ExpectCodes({.format = format, .mode = "sr", .seed = 5}, values);
  }
}

// 1.0625 + 2^-40 is above the midpoint of 1 and 1.125; as a float32 it would be the midpoint.
TEST_F(CastCommand, RoundsFloat64Once) {
  std::vector<double> values = {
      1.0625 + 0x1p-40, -1.0625 - 0x1p-40, 464 + 1e-9, 464 - 1e-9, 1e300, 1e-300, 0.1, -0.0};
  values.push_back(std::numeric_limits<double>::quiet_NaN());
  values.push_back(std::numeric_limits<double>::infinity());
  for (const float x : AwkwardFloats()) values.push_back(static_cast<double>(x) * (1 + 0x1p-50));
  PutNpy("in.npy", ElementType::kF64, values);
  for (const char* const format : {"e4m3fn", "bf16", "fp32", "e8m0fnu", "bnb-e5m2"}) {
    for (const char* const mode : {"rne", "odd", "sr"}) {
      ExpectCodes({.format = format, .mode = mode, .seed = 9}, values);
    }
  }
  Output("cast in.npy out.npy --format e4m3fn");
  EXPECT_EQ(CodeAt(GetNpy("out.npy"), 0), 0x39u);
}

TEST_F(CastCommand, DecodeGivesExactValues) {
  for (const char* const name : {"e4m3fn", "e5m2fnuz", "e8m0fnu", "binary8p2uf", "int8"}) {
    std::vector<uint8_t> codes(256);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
    PutNpy("codes.npy", ElementType::kU8, codes, {4, 64});
    EXPECT_EQ(Output(fmt::format("cast codes.npy values.npy --format {} --decode", name)), "");
    const Array values = GetNpy("values.npy");
    ASSERT_EQ(values.type, ElementType::kF32);
    EXPECT_EQ(values.shape, (std::vector<size_t>{4, 64}));
    const std::vector<float> expected = DecodeTable(FindFormat(name)->spec);
    for (size_t i = 0; i < 256; ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(values.Data<float>()[i]),
                std::bit_cast<uint32_t>(expected[i]))
          << name << " code " << i;
    }
  }
}

TEST_F(CastCommand, EncodeAfterDecodeGivesTheCodesBack) {
  std::vector<uint16_t> codes;
  for (uint32_t code = 0; code < 65536; ++code) {
    const ValueClass value_class = Classify(FindFormat("bf16")->spec, code);
    if (value_class != ValueClass::kNan) codes.push_back(static_cast<uint16_t>(code));
  }
  PutNpy("codes.npy", ElementType::kU16, codes);
  Output("cast codes.npy values.npy --format bf16 --decode");
  Output("cast values.npy again.npy --format bf16");
  EXPECT_EQ(Bytes(Path("again.npy")), Bytes(Path("codes.npy")));
}

TEST_F(CastCommand, KeepsTheShape) {
  PutNpy("in.npy", ElementType::kF32, std::vector<float>(24, 1), {2, 3, 4});
  Output("cast in.npy out.npy --format fp16");
  EXPECT_EQ(GetNpy("out.npy").shape, (std::vector<size_t>{2, 3, 4}));
  EXPECT_EQ(GetNpy("out.npy").type, ElementType::kU16);
  PutNpy("in.npy", ElementType::kF32, std::vector<float>{}, {0, 3});
  Output("cast in.npy out.npy --format fp16");
  EXPECT_EQ(GetNpy("out.npy").shape, (std::vector<size_t>{0, 3}));
}

TEST_F(CastCommand, StochasticCodesDependOnTheSeedAlone) {
  std::vector<float> values(100'003);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 0.001f * static_cast<float>(i % 997) + 0.3f;
  PutNpy("in.npy", ElementType::kF32, values);
  const auto codes = [&](const std::string& options) {
    Output("cast in.npy out.npy --format e4m3fn --rounding sr " + options);
    return Bytes(Path("out.npy"));
  };
  const std::string first = codes("--seed 1 --threads 1");
  EXPECT_EQ(codes("--seed 1 --threads 2"), first);
  EXPECT_EQ(codes("--seed 1 --threads 3"), first);
  EXPECT_EQ(codes("--seed 1 --backend scalar"), first);
  EXPECT_NE(codes("--seed 2"), first);
  EXPECT_NE(codes("--seed 1 --sr-bits 8"), first);
}

TEST_F(CastCommand, EveryBackendGivesTheSameCodes) {
  PutNpy("in.npy", ElementType::kF32, AwkwardFloats());
  for (const char* const rounding : {"rne", "sr"}) {
    const std::string cast =
        fmt::format("cast in.npy out.npy --format e4m3fn --rounding {}", rounding);
    Output(cast + " --backend scalar");
    const std::string expected = Bytes(Path("out.npy"));
    for (const std::string& line : Numsim("backends").Lines()) {
      std::vector<std::string> words = Words(line);
      if (!words.empty() && words[0] == "*") words.erase(words.begin());
      if (words.empty() || words[0] == "threads:") continue;
      if (line.find("not available") != std::string::npos) continue;
      Output(cast + " --backend " + words[0]);
      EXPECT_EQ(Bytes(Path("out.npy")), expected) << words[0];
    }
  }
}

TEST_F(CastCommand, ReplacesOutAndMayReadIt) {
  PutNpy("a.npy", ElementType::kF32, std::vector<float>{0.78f, 1});
  Output("cast a.npy a.npy --format e4m3fn");
  ASSERT_EQ(GetNpy("a.npy").Elements(), 2u);
  EXPECT_EQ(CodeAt(GetNpy("a.npy"), 0), 0x34u);
  EXPECT_EQ(Names(), (std::vector<std::string>{"a.npy"}));
}

}  // namespace
}  // namespace numsim::apps
