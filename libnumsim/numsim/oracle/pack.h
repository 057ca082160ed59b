// Packs: directories of test vectors that another project can check in.
//
// A pack holds text files of cases with their right answers (case_text.h), README.md, and
// manifest.json, which lists the files: operation, formats, rounding, columns, number of cases,
// SHA-256. The same version writes the same bytes on every machine. The manifest is written last,
// so a directory without one is not a pack.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/oracle/cases.h"
#include "numsim/oracle/judge.h"

namespace numsim {

struct PackSetInfo {
  std::string_view name;
  std::string_view summary;  // one line
};
// standard, p3109-minimal.
std::span<const PackSetInfo> PackSets();

// One file of a pack. Rounding, overflow and tininess are set where the operation has them.
struct PackEntry {
  OperationRequest request;
  CaseLevel level;
};
// The files of a set, in their order. Throws Error that names --set when there is none of that
// name.
std::vector<PackEntry> PackEntries(std::string_view set);

// "add-e4m3fn-rne-full.txt": unique within a set.
std::string PackFileName(const PackEntry& entry);
// The command that writes the file: "numsim oracle gen --op add ...".
std::string PackCommand(const PackEntry& entry);

// Writes the pack. Throws Error that names the directory when it exists and is not empty, or when
// something cannot be written.
void WritePack(const std::filesystem::path& directory, std::string_view set);
// The same for a list of files, with `set` as the name that the manifest tells.
void WritePack(const std::filesystem::path& directory,
               std::string_view set,
               std::span<const PackEntry> entries);

// A file as the manifest describes it.
struct PackFile {
  std::string path;  // relative to the manifest
  OperationRequest request;
  uint64_t cases = 0;
  std::string sha256;
};
// Reads the manifest of a pack. Throws Error that names the file and the field at fault.
std::vector<PackFile> ReadPack(const std::filesystem::path& directory);

// Compares the digest of every file with the manifest, then judges every case, and reports each
// file with its verdict. Throws Error naming the file that is missing or whose digest or number of
// cases differs. `limit`: mismatches kept of each file.
void CheckPack(const std::filesystem::path& directory,
               size_t limit,
               const std::function<void(const PackFile&, const Operation&, const Judge&)>& report);

}  // namespace numsim
