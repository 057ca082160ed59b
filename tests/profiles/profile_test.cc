// The table of profiles, and requests that it cannot serve.
#include "numsim/profiles/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "numsim/base/error.h"
#include "tests/reference/profiles/conversions.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr SourceType kSources[] = {SourceType::kFloat32, SourceType::kFloat64};

std::string ConstructionError(const char* profile, SourceType from, const char* target) {
  return ErrorOf([&] { ProfileConversion(profile, from, ParseFormat(target)); });
}

TEST(ProfileTable, HasTheProfilesThatTheIssueNames) {
  for (const char* const name : {"ocp-saturate",
                                 "ocp-nonsaturate",
                                 "cuda-13",
                                 "ml-dtypes",
                                 "torch-2.11",
                                 "torch-2.12",
                                 "torch-2.15",
                                 "hip-host",
                                 "onnx-cast-23",
                                 "onnx-cast-24",
                                 "qpytorch",
                                 "cpfloat",
                                 "p3109-v4-satfinite",
                                 "p3109-v4-satpropagate",
                                 "p3109-v4-satnone",
                                 "gaudi",
                                 "bitsandbytes",
                                 "ptx-rs",
                                 "amd-sr",
                                 "torch-bf16-sr",
                                 "torch-fp4",
                                 "onnx-e8m0-up",
                                 "onnx-e8m0-nearest-nosat",
                                 "p3109-a",
                                 "p3109-b",
                                 "p3109-c"}) {
    EXPECT_EQ(ErrorOf([&] { FindProfile(name); }), "no error");
  }
}

TEST(ProfileTable, EveryLineIsComplete) {
  std::set<std::string_view> names;
  for (const ProfileInfo& profile : ProfileTable()) {
    EXPECT_TRUE(names.insert(profile.name).second) << profile.name << " stands twice";
    EXPECT_EQ(&FindProfile(profile.name), &profile);
    for (const char c : profile.name) {
      EXPECT_TRUE(std::islower(static_cast<unsigned char>(c)) != 0 ||
                  std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.')
          << profile.name;
    }
    EXPECT_FALSE(profile.version.empty()) << profile.name;
    EXPECT_FALSE(profile.source.empty()) << profile.name;
    EXPECT_FALSE(profile.note.empty()) << profile.name;
    EXPECT_FALSE(ProfileTargets(profile.name, SourceType::kFloat32).empty()) << profile.name;
  }
}

TEST(CompleteProfileName, WritesABeginningOut) {
  for (const auto& [text, name] : {std::pair{"cuda", "cuda-13"},
                                   {"cuda-13", "cuda-13"},
                                   {"cuda-13-s", "cuda-13-satfinite"},
                                   {"hip", "hip-host"},
                                   {"ml", "ml-dtypes"},
                                   {"q", "qpytorch"},
                                   {"amd", "amd-sr"},
                                   {"amd-sr-h", "amd-sr-host"},
                                   {"torch-2.12", "torch-2.12"},
                                   {"p3109-a:8", "p3109-a:8"},
                                   {"rule:rne,saturate", "rule:rne,saturate"}}) {
    EXPECT_EQ(CompleteProfileName(text), name);
  }
}

TEST(CompleteProfileName, RefusesWhatMayBeSeveral) {
  EXPECT_EQ(
      ErrorOf([] { CompleteProfileName("torch"); }),
      "profile 'torch' may be any of torch-2.11, torch-2.12, torch-2.15, torch-fp4, torch-bf16-sr");
  EXPECT_THAT(ErrorOf([] { CompleteProfileName("c"); }), HasSubstr("cuda-13"));
  EXPECT_THAT(ErrorOf([] { CompleteProfileName("nope"); }), HasSubstr("'nope' is not one of"));
  EXPECT_THAT(ErrorOf([] { CompleteProfileName(""); }), HasSubstr("'' is not one of"));
}

// A profile that rests on somebody else's report says so.
TEST(ProfileTable, ThirdPartyReportsAreMarked) {
  for (const char* const name : {"torch-2.12", "ptx-rs", "amd-sr"}) {
    EXPECT_EQ(FindProfile(name).evidence, Evidence::kThirdParty) << name;
  }
  for (const char* const name : {"ocp-saturate", "ocp-nonsaturate", "p3109-v4-satnone"}) {
    EXPECT_EQ(FindProfile(name).evidence, Evidence::kSpecification) << name;
  }
}

TEST(ProfileTable, EveryTargetCanBeUsed) {
  for (const ProfileInfo& profile : ProfileTable()) {
    for (const SourceType from : kSources) {
      for (const std::string& target : ProfileTargets(profile.name, from)) {
        const Format format = ParseFormat(target);
        const ProfileConversion conversion(profile.name, from, format);
        EXPECT_EQ(conversion.profile().name, profile.name);
        EXPECT_EQ(conversion.name(), profile.name);
        EXPECT_EQ(conversion.source_type(), from);
        EXPECT_EQ(conversion.format(), format.spec);
        EXPECT_EQ(conversion.random_bits() > 0, profile.stochastic) << profile.name;
        EXPECT_LE(conversion.random_bits(), 32);
        EXPECT_GE(conversion.RandomElements(), 1);
      }
    }
  }
}

TEST(ProfileTable, TargetsStandInTheOrderOfTheTableOfFormats) {
  const auto place = [](const std::string& name) {
    return FindFormat(name) - FormatTable().data();
  };
  for (const ProfileInfo& profile : ProfileTable()) {
    for (const SourceType from : kSources) {
      const std::vector<std::string> targets = ProfileTargets(profile.name, from);
      for (const std::string& target : targets) {
        ASSERT_NE(FindFormat(target), nullptr) << profile.name << " " << target;
      }
      for (size_t i = 1; i < targets.size(); ++i) {
        EXPECT_LT(place(targets[i - 1]), place(targets[i])) << profile.name;
      }
    }
  }
}

// Each conversion of the table is compared with a reference somewhere in tests/profiles.
TEST(ProfileTable, EveryFloat32ConversionHasAReference) {
  std::set<std::pair<std::string, std::string>> known;
  for (const reference::Conversion& conversion : reference::Float32Conversions()) {
    known.emplace(conversion.profile, conversion.target);
  }
  for (const ProfileInfo& profile : ProfileTable()) {
    if (profile.name == "bitsandbytes") continue;  // bitsandbytes_test.cc
    for (const std::string& target : ProfileTargets(profile.name, SourceType::kFloat32)) {
      if (profile.name == "ocp-saturate" && target[1] != '4' && target[1] != '5') continue;
      EXPECT_EQ(known.count({std::string(profile.name), target}), 1u)
          << profile.name << " to " << target;
    }
  }
}

TEST(ProfileErrors, UnknownNameListsTheNames) {
  for (const char* const name : {"cuda-12", "", "CUDA-13", "p3109-v4", "p3109-d"}) {
    const std::string error = ConstructionError(name, SourceType::kFloat32, "e4m3fn");
    EXPECT_THAT(error, HasSubstr("'" + std::string(name) + "'"));
    EXPECT_THAT(error, HasSubstr("cuda-13"));
    EXPECT_THAT(error, HasSubstr("hip-host"));
    EXPECT_THAT(error, Not(HasSubstr("\n")));
  }
  EXPECT_THAT(ErrorOf([] { FindProfile("nope"); }), HasSubstr("nope"));
  EXPECT_THAT(ErrorOf([] { ProfileTargets("nope", SourceType::kFloat32); }), HasSubstr("nope"));
}

TEST(ProfileErrors, TargetThatIsNotDefinedListsTheTargets) {
  const std::string error = ConstructionError("hip-host", SourceType::kFloat32, "e8m0fnu");
  EXPECT_THAT(error, HasSubstr("hip-host"));
  EXPECT_THAT(error, HasSubstr("e8m0fnu"));
  EXPECT_THAT(error, HasSubstr("e4m3fnuz"));
  for (const ProfileInfo& profile : ProfileTable()) {
    for (const SourceType from : kSources) {
      const std::vector<std::string> targets = ProfileTargets(profile.name, from);
      for (const FormatEntry& entry : FormatTable()) {
        const std::string name(entry.name);
        const bool defined = std::find(targets.begin(), targets.end(), name) != targets.end();
        const std::string said =
            ConstructionError(std::string(profile.name).c_str(), from, name.c_str());
        EXPECT_EQ(said == "no error", defined) << profile.name << " " << name << ": " << said;
      }
    }
  }
}

TEST(ProfileErrors, CustomFormatsHaveNoProfiles) {
  for (const ProfileInfo& profile : ProfileTable()) {
    const std::string error =
        ConstructionError(std::string(profile.name).c_str(), SourceType::kFloat32, "e4m3:bias=8");
    EXPECT_THAT(error, HasSubstr(profile.name));
    EXPECT_THAT(error, HasSubstr("e4m3:bias=8"));
  }
}

TEST(ProfileErrors, SourceThatIsNotDefinedIsNamed) {
  const std::string error = ConstructionError("torch-2.11", SourceType::kFloat64, "e4m3fn");
  EXPECT_THAT(error, HasSubstr("torch-2.11"));
  EXPECT_THAT(error, HasSubstr("float64"));
}

TEST(ProfileErrors, RandomBitsOutOfRange) {
  for (const char* const name : {"p3109-a:0",
                                 "p3109-a:33",
                                 "p3109-a:x",
                                 "p3109-a:",
                                 "p3109-a:-1",
                                 "p3109-a:8x",
                                 "cuda-13:8",
                                 "p3109-a:4294967304"}) {
    const std::string error = ConstructionError(name, SourceType::kFloat32, "binary8p4se");
    EXPECT_NE(error, "no error") << name;
    EXPECT_THAT(error, HasSubstr(name));
  }
  const ProfileConversion one("p3109-a:1", SourceType::kFloat32, ParseFormat("binary8p4se"));
  EXPECT_EQ(one.random_bits(), 1);
  EXPECT_EQ(one.name(), "p3109-a:1");
  EXPECT_EQ(one.profile().name, "p3109-a");
}

TEST(ProfileErrors, RuleOfNumsimThatDoesNotParse) {
  for (const char* const name :
       {"rule:", "rule:rne", "rule:rne,", "rule:x,saturate", "rule:rne,x", "rule:rne,saturate,a"}) {
    const std::string error = ConstructionError(name, SourceType::kFloat32, "e4m3fn");
    EXPECT_NE(error, "no error") << name;
    EXPECT_THAT(error, Not(HasSubstr("\n")));
  }
}

TEST(ProfileNames, SourceTypesAndEvidenceReadBack) {
  EXPECT_EQ(ToString(SourceType::kFloat32), "float32");
  EXPECT_EQ(ParseSourceType("float64"), SourceType::kFloat64);
  const std::string error = ErrorOf([] { ParseSourceType("float16"); });
  EXPECT_THAT(error, HasSubstr("'float16'"));
  EXPECT_THAT(error, HasSubstr("float32, float64"));
  EXPECT_EQ(ToString(Evidence::kThirdParty), "third-party");
}

}  // namespace
}  // namespace numsim
