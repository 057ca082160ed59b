// manifest.json: records how a result was produced and which files it consists of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace numsim {

// Names and their values as text, in the order in which the file lists them.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct HostInfo {
  std::string cpu;  // model name, "" if unknown
  int cores = 0;    // number of cores that the process may use
  std::string os;   // e.g. "Linux 6.1.0 x86_64"
};

// A file of the result; the path is relative to the manifest's directory.
struct OutputFile {
  std::string path;
  uint64_t bytes = 0;
  std::string sha256;
};

struct Manifest {
  std::vector<std::string> command;  // argv
  std::string experiment;
  NamedTexts options;       // all options, including defaults
  NamedTexts policies;      // choices that are not options: rounding, overflow, accumulation, ...
  NamedTexts claims;        // claims that were tested, by id: contrast and margin; omitted if empty
  NamedTexts measurements;  // times and rates of this run on this machine; omitted if empty
  NamedTexts allowed;       // differences of merged shards that were accepted; omitted if empty
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

// Writes one JSON object whose keys are the fields above, in that order, indented by two spaces;
// vectors become lists and NamedTexts objects. Bytes that are not UTF-8 become U+FFFD. Replaces the
// file atomically (see atomic_file.h). Requires unique names in each NamedTexts. Throws Error if
// the file cannot be written.
void WriteManifest(const std::filesystem::path& path, const Manifest& manifest);

// Returns the available information about this machine; never fails.
HostInfo DescribeHost();

// Returns the current time as "2026-01-31T12:34:56Z".
std::string UtcNow();

// Returns the size and SHA-256 of directory/path. Throws Error if it cannot be read.
OutputFile DescribeOutput(const std::filesystem::path& directory, std::string_view path);

// Returns the outputs that a manifest lists. Throws Error naming the file if it is no manifest.
std::vector<OutputFile> ReadOutputs(const std::filesystem::path& manifest);

// Throws Error naming the file if `listed` has this output with another SHA-256 than directory/name has.
// Returns whether it is listed.
bool CheckOutput(const std::filesystem::path& directory,
                 const std::vector<OutputFile>& listed,
                 std::string_view name);

// Returns the SHA-256 of the bytes of a text as 64 lower-case hexadecimal digits.
std::string Sha256OfText(std::string_view text);

}  // namespace numsim
