// Profiles against what the implementations themselves gave, for all 2^32 float32 patterns:
// recorded/README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "numsim/profiles/profile.h"

namespace numsim {
namespace {

struct EqualRun {
  uint32_t first;
  uint32_t last;
  uint32_t code;
};

// The conversions of a recorded file by name.
std::map<std::string, std::vector<EqualRun>> ReadRecorded(const std::string& file) {
  const char* root = std::getenv("NUMSIM_SOURCE_DIR");
  std::ifstream in(std::string(root == nullptr ? "." : root) + "/tests/profiles/recorded/" + file);
  EXPECT_TRUE(in.good()) << file;
  std::map<std::string, std::vector<EqualRun>> conversions;
  std::vector<EqualRun>* runs = nullptr;
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with("#")) continue;
    if (line.starts_with("conversion ")) {
      runs = &conversions[line.substr(11)];
      continue;
    }
    EqualRun run{0, 0xFFFFFFFFu, 0};
    std::istringstream(line) >> std::hex >> run.first >> run.code;
    if (!runs->empty()) runs->back().last = run.first - 1;
    runs->push_back(run);
  }
  return conversions;
}

// By the contract of MonotoneRanges, equal codes at both ends of a piece that lies in one range and
// has one sign prove the whole piece.
void ExpectEqual(const std::vector<EqualRun>& runs, const ProfileConversion& conversion) {
  std::vector<uint32_t> cuts;  // first patterns of ranges, both signs
  for (const uint64_t magnitude : conversion.MonotoneRanges()) {
    cuts.push_back(static_cast<uint32_t>(magnitude));
    cuts.push_back(static_cast<uint32_t>(magnitude) | 0x80000000u);
  }
  std::sort(cuts.begin(), cuts.end());
  uint64_t covered = 0;
  for (const EqualRun& run : runs) {
    ASSERT_EQ(run.first, covered) << "the file has a gap";
    covered = uint64_t{run.last} + 1;
    std::vector<uint32_t> starts = {run.first};
    for (const uint32_t cut : cuts) {
      if (cut > run.first && cut <= run.last) starts.push_back(cut);
    }
    for (size_t i = 0; i < starts.size(); ++i) {
      const uint32_t last = i + 1 < starts.size() ? starts[i + 1] - 1 : run.last;
      for (const uint32_t pattern : {starts[i], last}) {
        ASSERT_EQ(conversion.Encode(pattern), run.code) << std::hex << pattern;
      }
    }
  }
  EXPECT_EQ(covered, uint64_t{1} << 32);
}

struct Recorded {
  const char* file;
  const char* conversion;
  const char* profile;
};

const Recorded kRecorded[] = {
    {"cuda-device.txt", "e4m3fn nosat", "cuda-13"},
    {"cuda-device.txt", "e4m3fn satfinite", "cuda-13-satfinite"},
    {"cuda-device.txt", "e5m2 nosat", "cuda-13"},
    {"cuda-device.txt", "e5m2 satfinite", "cuda-13-satfinite"},
    {"cuda-device.txt", "e8m0fnu rp nosat", "cuda-13"},
    {"cuda-device.txt", "e8m0fnu rp satfinite", "cuda-13-satfinite"},
    {"cuda-device.txt", "e8m0fnu rz nosat", "cuda-13-rz"},
    {"cuda-device.txt", "e8m0fnu rz satfinite", "cuda-13-rz-satfinite"},
    {"cuda-device.txt", "e2m3fn", "cuda-13"},
    {"cuda-device.txt", "e3m2fn", "cuda-13"},
    {"cuda-device.txt", "e2m1fn", "cuda-13"},
    {"torch-cpu.txt", "e4m3fn", "torch-2.11"},
    {"torch-cpu.txt", "e5m2", "torch-2.11"},
    {"torch-cpu.txt", "e4m3fnuz", "torch-2.11"},
    {"torch-cpu.txt", "e5m2fnuz", "torch-2.11"},
    {"torch-cpu.txt", "e8m0fnu", "torch-2.11"},
    {"torch-2.15-cpu.txt", "e4m3fn", "torch-2.15"},
    {"torch-2.15-cpu.txt", "e5m2", "torch-2.15"},
    {"torch-2.15-cpu.txt", "e4m3fnuz", "torch-2.15"},
    {"torch-2.15-cpu.txt", "e5m2fnuz", "torch-2.15"},
    {"torch-2.15-cpu.txt", "e8m0fnu", "torch-2.15"},
    {"ml-dtypes.txt", "e4m3fn", "ml-dtypes"},
    {"ml-dtypes.txt", "e5m2", "ml-dtypes"},
    {"ml-dtypes.txt", "e4m3fnuz", "ml-dtypes"},
    {"ml-dtypes.txt", "e5m2fnuz", "ml-dtypes"},
    {"ml-dtypes.txt", "e4m3b11fnuz", "ml-dtypes"},
    {"ml-dtypes.txt", "e4m3", "ml-dtypes"},
    {"ml-dtypes.txt", "e3m4", "ml-dtypes"},
    {"ml-dtypes.txt", "e8m0fnu", "ml-dtypes"},
    {"ml-dtypes.txt", "e2m3fn", "ml-dtypes"},
    {"ml-dtypes.txt", "e3m2fn", "ml-dtypes"},
    {"ml-dtypes.txt", "e2m1fn", "ml-dtypes"},
};

TEST(Recorded, ProfilesGiveEveryRecordedCode) {
  for (const Recorded& recorded : kRecorded) {
    SCOPED_TRACE(std::string(recorded.file) + " " + recorded.conversion);
    const auto conversions = ReadRecorded(recorded.file);
    ASSERT_TRUE(conversions.contains(recorded.conversion));
    const std::string name = recorded.conversion;
    const Format target = ParseFormat(name.substr(0, name.find(' ')));
    const ProfileConversion conversion(recorded.profile, SourceType::kFloat32, target);
    ExpectEqual(conversions.at(recorded.conversion), conversion);
  }
}

TEST(Recorded, EveryConversionOfTheFilesIsCompared) {
  for (const char* file :
       {"cuda-device.txt", "torch-cpu.txt", "torch-2.15-cpu.txt", "ml-dtypes.txt"}) {
    for (const auto& [name, runs] : ReadRecorded(file)) {
      const bool compared = std::any_of(
          std::begin(kRecorded), std::end(kRecorded), [&file, &n = name](const Recorded& r) {
            return std::string(r.file) == file && r.conversion == n;
          });
      EXPECT_TRUE(compared) << file << " " << name;
    }
  }
}

// Host and device code of CUDA, and PyTorch on processor and card, agree on every pattern.
TEST(Recorded, HostAndDeviceAgree) {
  const auto same = [](const std::string& a, const std::string& b) {
    const auto x = ReadRecorded(a), y = ReadRecorded(b);
    ASSERT_EQ(x.size(), y.size());
    for (const auto& [name, runs] : x) {
      ASSERT_TRUE(y.contains(name)) << name;
      const std::vector<EqualRun>& others = y.at(name);
      ASSERT_EQ(runs.size(), others.size()) << name;
      for (size_t i = 0; i < runs.size(); ++i) {
        EXPECT_EQ(runs[i].first, others[i].first) << name;
        EXPECT_EQ(runs[i].code, others[i].code) << name;
      }
    }
  };
  same("cuda-device.txt", "cuda-host.txt");
  same("torch-cpu.txt", "torch-cuda.txt");
}

}  // namespace
}  // namespace numsim
