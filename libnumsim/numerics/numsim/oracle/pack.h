// Packs: directories of test vectors that another project can check in.
//
// A pack consists of files of cases with their expected results in one form, a README.md, and a
// manifest.json. The manifest lists the files with operation, formats, rounding, columns, number of
// cases and SHA-256. The same version of numsim writes the same bytes on every machine.
// The manifest is written last, so a directory without one is not a complete pack.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/oracle/case_output.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/judge.h"

namespace numsim {

struct PackSetInfo {
  std::string_view name;
  std::string_view summary;  // one line
};
// Returns the sets of files that can be written as a pack: standard, p3109-minimal and, one file or
// more for each row of the table of that name, formats, operations, profiles and accumulation-modes.
std::span<const PackSetInfo> PackSets();

// A form in which the files of a pack are written: hex, json, csv, readmemh or npy.
struct PackForm {
  std::string_view name;
  std::string_view ending;         // of the files' names
  std::optional<CaseOutput> text;  // empty: an array (case_npy.h)
  std::string_view meaning;        // what a file holds, in the README of the pack
};
std::span<const PackForm> PackForms();
// Returns the form of that name. Throws Error that names --as and the forms if there is none.
const PackForm& FindPackForm(std::string_view name);

// One file of a pack. Rounding, overflow and tininess are set if the operation uses them.
struct PackEntry {
  OperationRequest request;
  CaseLevel level;
};
// Returns the files of a set in the order of the pack. Throws Error that names --set if no set has
// this name.
std::vector<PackEntry> PackEntries(std::string_view set);

// Returns the name of the file, for example "add-e4m3fn-rne-full.txt". Names are unique within a
// set.
std::string PackFileName(const PackEntry& entry, const PackForm& form);
// Returns the command that writes the file: "numsim oracle gen --results --op add ...".
std::string PackCommand(const PackEntry& entry, const PackForm& form);

// Writes a set of files as a pack. Throws Error that names the directory or file if the directory
// exists and is not empty, or if something cannot be written.
void WritePack(const std::filesystem::path& directory, std::string_view set, const PackForm& form);
// Writes the files of `entries` as a pack. The manifest states `set` as its name.
void WritePack(const std::filesystem::path& directory,
               std::string_view set,
               std::span<const PackEntry> entries,
               const PackForm& form);

// One file of a pack as described by the manifest.
struct PackFile {
  std::string path;  // relative to the manifest
  OperationRequest request;
  uint64_t cases = 0;
  std::string sha256;
};
struct Pack {
  const PackForm* form = nullptr;  // of PackForms()
  std::vector<PackFile> files;
};
// Reads the manifest of a pack. Throws Error that names the file and the entry at fault.
Pack ReadPack(const std::filesystem::path& directory);

// Compares the digest of every file with the manifest. Then checks every case and calls `report`
// for each file. The Judge passed to `report` stores the first `limit` mismatches of the file.
// Throws Error that names the file if a file is missing, or if its digest or its number of cases
// differs from the manifest; and if the form of the pack is neither hex nor npy, which are read.
void CheckPack(const std::filesystem::path& directory,
               size_t limit,
               const std::function<void(const PackFile&, const Operation&, const Judge&)>& report);

}  // namespace numsim
