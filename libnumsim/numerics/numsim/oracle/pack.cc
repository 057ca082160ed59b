#include "numsim/oracle/pack.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <system_error>

#include "numsim/base/build_info.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/durable.h"
#include "numsim/io/input_file.h"
#include "numsim/io/npy.h"
#include "numsim/io/shared/sha256.h"
#include "numsim/oracle/case_npy.h"
#include "numsim/oracle/case_output.h"
#include "numsim/oracle/case_text.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/internal/pack_manifest.h"
#include "numsim/oracle/operation.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestName = "manifest.json";

constexpr PackForm kForms[] = {
    {"hex",
     "txt",
     CaseOutput::kHex,
     "Each line is one case. Columns are hexadecimal digits without a prefix, separated by one blank."},
    {"json",
     "json",
     CaseOutput::kJson,
     "Each file is one object with op, columns and cases; a case is an array of integers, one per\n"
     "column."},
    {"csv",
     "csv",
     CaseOutput::kCsv,
     "The first line names the columns, and each other line is one case: hexadecimal digits with the\n"
     "prefix 0x."},
    {"readmemh",
     "mem",
     CaseOutput::kReadmemh,
     "Each word is one case, for Verilog's $readmemh: whole hexadecimal digits per column, the first\n"
     "column at the top. Comments at the head of a file give the bits of each column."},
    {"npy",
     "npy",
     std::nullopt,
     "Each file is an array of NumPy of shape (cases, columns). Its elements are the narrowest unsigned\n"
     "integers that hold every column."},
};

constexpr std::string_view kReadme = R"(# Test vectors of numsim {0}: {1}

manifest.json lists the files with operation, formats, rounding, columns, number of cases, SHA-256,
and the command that writes the file.

{2}
Columns are bit patterns: the inputs, the results, and last the exception flags, if the operation has
them. The random bits of stochastic rounding are an input. Flags: 01 inexact, 02 underflow, 04
overflow, 08 divide by zero, 10 invalid.

To check an implementation, give it the inputs of each case and compare its results. Or let it write
inputs and results, and pipe them into `numsim oracle check` with the options of the command in the
manifest. `numsim oracle check --pack DIR` checks the digests of a pack of the form hex or npy, and
checks that your version of numsim gives the same results.
{3})";

constexpr std::string_view kDraftNote = R"(
The formats and operations are those of a draft of IEEE P3109, which must not be used to claim
conformance. An implementation that agrees with these files has been checked against them, and no
more than that.
)";

std::string ReadmeText(std::string_view set, const PackForm& form) {
  const bool draft = set.starts_with("p3109");
  return fmt::format(
      fmt::runtime(kReadme), BuildVersion(), set, form.meaning, draft ? kDraftNote : "");
}

void MakeEmptyDirectory(const fs::path& directory) {
  std::error_code error = MakeDirectories(directory);
  if (error || !fs::is_directory(directory)) {
    throw Error::Format("{}: cannot create the directory{}",
                        directory.string(),
                        error ? ": " + error.message() : "");
  }
  if (!fs::is_empty(directory, error) || error) {
    throw Error::Format("{}: the directory is not empty", directory.string());
  }
}

WrittenFile WriteFile(const fs::path& directory, const PackEntry& entry, const PackForm& form) {
  WrittenFile file;
  file.path = PackFileName(entry, form);
  const fs::path path = directory / file.path;
  const std::unique_ptr<Operation> operation = MakeOperation(entry.request);
  const CaseRows rows(*operation, entry.level, true);
  file.cases = rows.size();
  if (form.text) {
    AtomicFile output(path);
    WriteCases(rows, operation->info().name, *form.text, [&](std::string_view text) {
      output.Write(text);
    });
    output.Commit();
  } else {
    WriteNpy(path, CaseArray(rows, path));
  }
  file.bytes = fs::file_size(path);
  file.sha256 = Sha256Hex(path);
  return file;
}

// A file open for reading.
class Descriptor {
 public:
  explicit Descriptor(const fs::path& path) : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (value_ < 0) {
      throw Error::Format("{}: cannot open: {}", path.string(), std::strerror(errno));
    }
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int Value() const { return value_; }

 private:
  int value_;
};

// Adds every case of a file to `judge`.
void Tally(const fs::path& path, const PackForm& form, const Operation& operation, Judge& judge) {
  if (!form.text) return TallyNpy(path, ColumnsOf(operation), operation.has_flags(), judge);
  const Descriptor input(path);
  TallyText(input.Value(), path.string(), ColumnsOf(operation), operation.has_flags(), judge);
}

}  // namespace

std::span<const PackForm> PackForms() { return kForms; }

const PackForm& FindPackForm(std::string_view name) {
  std::string names;
  for (const PackForm& form : kForms) {
    if (form.name == name) return form;
    names += (names.empty() ? "" : ", ") + std::string(form.name);
  }
  throw NotOneOf("--as", name, names);
}

std::string PackFileName(const PackEntry& entry, const PackForm& form) {
  const OperationRequest& request = entry.request;
  std::string name = request.op;
  for (const std::string* part : {&request.format, &request.format_b, &request.format_c}) {
    if (!part->empty()) name += "-" + *part;
  }
  if (!request.to.empty()) name += "-to-" + request.to;
  if (!request.accumulation.empty()) name += "-" + request.accumulation;
  if (!request.profile.empty()) name += "-" + request.profile;
  if (request.rounding) {
    name += fmt::format("-{}", ToString(request.rounding->mode));
    if (request.rounding->mode == RoundingMode::kStochastic) {
      name +=
          fmt::format("-{}{}", ToString(request.rounding->variant), request.rounding->random_bits);
    }
  }
  if (request.overflow) name += fmt::format("-{}", ToString(*request.overflow));
  if (request.invalid_integer) name += fmt::format("-{}", ToString(*request.invalid_integer));
  name += fmt::format("-{}.{}", ToString(entry.level), form.ending);
  std::replace(name.begin(), name.end(), ':', '-');
  return name;
}

std::string PackCommand(const PackEntry& entry, const PackForm& form) {
  const OperationRequest& request = entry.request;
  std::string command = "numsim oracle gen --results";
  const auto add = [&](const char* option, std::string_view value) {
    if (!value.empty()) command += fmt::format(" --{} {}", option, value);
  };
  add("op", request.op);
  add("format", request.format);
  add("format-b", request.format_b);
  add("format-c", request.format_c);
  add("to", request.to);
  add("scale-format", request.scale_format);
  add("accumulation-mode", request.accumulation);
  if (request.any_operands) command += " --any-operands";
  if (request.rounding) {
    add("rounding", ToString(request.rounding->mode));
    if (request.rounding->mode == RoundingMode::kStochastic) {
      add("sr-variant", ToString(request.rounding->variant));
      add("sr-bits", std::to_string(request.rounding->random_bits));
    }
  }
  if (request.overflow) add("overflow", ToString(*request.overflow));
  if (request.tininess) add("tininess", ToString(*request.tininess));
  if (request.invalid_integer) add("invalid-integer", ToString(*request.invalid_integer));
  if (request.length > 0) add("length", std::to_string(request.length));
  if (request.tensor_scale) command += " --tensor-scale";
  if (request.block > 0) add("block", std::to_string(request.block));
  add("scale-rule", request.scale_rule);
  add("profile", request.profile);
  add("scale-rounding", request.scale_rounding);
  add("level", ToString(entry.level));
  if (entry.level.kind == CaseLevel::Kind::kRandom) add("seed", std::to_string(entry.level.seed));
  if (!form.text) {
    add("npy", PackFileName(entry, form));
  } else if (form.text != CaseOutput::kHex) {
    add("as", form.name);
  }
  return command;
}

void WritePack(const fs::path& directory, std::string_view set, const PackForm& form) {
  WritePack(directory, set, PackEntries(set), form);
}

void WritePack(const fs::path& directory,
               std::string_view set,
               std::span<const PackEntry> entries,
               const PackForm& form) {
  std::set<std::string> names;
  for (const PackEntry& entry : entries) {
    MakeOperation(entry.request);  // throws for an invalid entry before anything is written
    const bool is_new = names.insert(PackFileName(entry, form)).second;
    NUMSIM_CHECK(is_new, "{} twice in a pack", PackFileName(entry, form));
  }
  MakeEmptyDirectory(directory);
  std::vector<WrittenFile> files;
  for (const PackEntry& entry : entries) files.push_back(WriteFile(directory, entry, form));
  WriteFileAtomically(directory / "README.md", ReadmeText(set, form));
  WriteFileAtomically(directory / kManifestName, PackManifestText(set, form, entries, files));
}

Pack ReadPack(const fs::path& directory) {
  const fs::path path = directory / kManifestName;
  return ParsePackManifest(ReadText(path), path.string());
}

void CheckPack(const fs::path& directory,
               size_t limit,
               const std::function<void(const PackFile&, const Operation&, const Judge&)>& report) {
  const Pack pack = ReadPack(directory);
  if (pack.form->text && pack.form->text != CaseOutput::kHex) {
    throw Error::Format("{}: the pack has the form {}; only hex and npy can be checked",
                        (directory / kManifestName).string(),
                        pack.form->name);
  }
  for (const PackFile& file : pack.files) {
    const fs::path path = directory / file.path;
    const std::string digest = Sha256Hex(path);
    if (digest == file.sha256) continue;
    throw Error::Format(
        "{}: SHA-256 is {}, the manifest says {}", path.string(), digest, file.sha256);
  }
  for (const PackFile& file : pack.files) {
    const fs::path path = directory / file.path;
    const std::unique_ptr<Operation> operation = MakeOperation(file.request);
    Judge judge(*operation, NanRule::kExact, limit);
    Tally(path, *pack.form, *operation, judge);
    if (judge.cases() != file.cases) {
      throw Error::Format(
          "{}: {} cases, the manifest says {}", path.string(), judge.cases(), file.cases);
    }
    report(file, *operation, judge);
  }
}

}  // namespace numsim
