#include "experiments/study/own_studies.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "experiments/study/study_digest.h"
#include "experiments/study/study_file.h"
#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/io/input_file.h"
#include "numsim/io/manifest.h"

namespace numsim::experiments::study {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = 1 << 20;
constexpr const char* kRowsOption = "study-rows";

std::vector<fs::path> FilesOf(std::string_view paths) {
  std::vector<fs::path> files;
  while (!paths.empty()) {
    const size_t end = std::min(paths.find(':'), paths.size());
    const fs::path path(paths.substr(0, end));
    paths.remove_prefix(std::min(end + 1, paths.size()));
    if (path.empty()) continue;
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const size_t first = files.size();
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".toml") files.push_back(entry.path());
    }
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(first), files.end());
  }
  return files;
}

// Throws Error unless the name can be a word of a command line and a part of a path.
void CheckName(const std::string& name, const fs::path& file) {
  const bool good = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (good && name.front() != '-') return;
  throw Error::Format(
      "{}: name '{}': expected small letters, digits and '-'", file.string(), Printable(name));
}

// Throws Error if the rows of the settings follow from another file.
void RequireRows(const Settings& settings, const fs::path& file, const std::string& digest) {
  if (settings.Get(kRowsOption) == digest) return;
  throw Error::Format(
      "--{} {}: the rows of {} are others, with SHA-256 {}: it has other axes, settings, keys or probes",
      kRowsOption,
      Printable(settings.Get(kRowsOption)),
      file.string(),
      digest);
}

Experiment Read(const fs::path& file) {
  if (InputFile(file).Size() > kMostBytes) {
    throw Error::Format("{}: is larger than {} bytes", file.string(), kMostBytes);
  }
  const std::string text = ReadText(file);
  Study study = ReadStudy(text, file.string(), {});
  CheckName(study.name, file);
  Experiment experiment;
  try {
    experiment = MakeExperiment(std::move(study));
  } catch (const Error& error) {
    throw Error::Format("{}: {}", file.string(), error.what());
  }
  const Node root = Node::Read(text, file.string());
  experiment.file = {.sha256 = Sha256OfText(text), .claims = DigestOfClaims(root)};
  const std::string digest = DigestOfRows(root);
  experiment.options.push_back(
      {.name = kRowsOption,
       .quick = digest,
       .paper = digest,
       .help =
           "SHA-256 of what rows follow from in the study's file; not to be given: results of another "
           "one are not continued"});
  experiment.file.check_rows = [=](const Settings& settings) {
    RequireRows(settings, file, digest);
  };
  experiment.trials = [check = experiment.file.check_rows,
                       trials = experiment.trials](const Settings& settings) {
    check(settings);
    return trials(settings);
  };
  return experiment;
}

}  // namespace

std::vector<Experiment> OwnStudies(std::string_view paths, const std::vector<Experiment>& known) {
  std::vector<Experiment> studies;
  for (const fs::path& file : FilesOf(paths)) {
    Experiment study = Read(file);
    const auto has_name = [&](const Experiment& other) { return other.name == study.name; };
    if (std::ranges::any_of(known, has_name) || std::ranges::any_of(studies, has_name)) {
      throw Error::Format("{}: there already is an experiment {}", file.string(), study.name);
    }
    studies.push_back(std::move(study));
  }
  return studies;
}

}  // namespace numsim::experiments::study
