// manifest.json: how a result came about, and what it consists of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace numsim {

// Names with their values as text, in the order in which the file shall list them.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct HostInfo {
  std::string cpu;  // model name, "" when the system does not tell
  int cores = 0;    // that the process may use
  std::string os;   // e.g. "Linux 6.1.0 x86_64"
};

// A file of the result, with its path relative to the manifest's directory.
struct OutputFile {
  std::string path;
  uint64_t bytes = 0;
  std::string sha256;
};

struct Manifest {
  std::vector<std::string> command;  // argv
  std::string experiment;
  NamedTexts options;       // all, after defaults
  NamedTexts policies;      // rounding, overflow, accumulator and so on, that no option names
  NamedTexts measurements;  // times and rates of this run on this machine; left out when empty
  std::vector<uint64_t> seeds;
  std::string git_commit;
  std::string compiler;
  std::string build_type;
  std::string backend;
  std::string simd_target;
  NamedTexts versions;  // numsim, fmt, highway, gnuplot
  HostInfo host;
  int threads = 0;
  std::string started;  // UTC, ISO 8601
  std::string ended;
  std::vector<OutputFile> outputs;
};

// Writes one JSON object whose keys are the fields above, in that order, lists and objects for what
// is a list or named here, indented by two spaces. Text that is not UTF-8 gets U+FFFD for what is
// not. Replaces the file in one step (see atomic_file.h). Throws Error when it cannot be written.
// Requires unique names in each NamedTexts.
void WriteManifest(const std::filesystem::path& path, const Manifest& manifest);

// Returns what can be found out about this machine; never fails.
HostInfo DescribeHost();

// Returns the current time as "2026-01-31T12:34:56Z".
std::string UtcNow();

// Returns size and SHA-256 of directory/path. Throws Error when it cannot be read.
OutputFile DescribeOutput(const std::filesystem::path& directory, std::string_view path);

}  // namespace numsim
