#include "numsim/plot/figure.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/directory_lock.h"
#include "numsim/io/input_file.h"
#include "numsim/io/shared/child_process.h"
#include "numsim/plot/internal/gnuplot_script.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;

// A hidden temporary directory next to the figure, removed on destruction. gnuplot writes its files
// there, under the names that the script chooses.
class DrawingDirectory {
 public:
  explicit DrawingDirectory(const fs::path& parent) {
    std::string name = (parent / (TemporaryPrefix() + "figure-XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw Error::Format("{}: cannot create a directory in it: {}",
                          parent.string(),
                          std::generic_category().message(errno));
    }
    path_ = name;
  }
  ~DrawingDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  DrawingDirectory(const DrawingDirectory&) = delete;
  DrawingDirectory& operator=(const DrawingDirectory&) = delete;
  const fs::path& Path() const { return path_; }

 private:
  fs::path path_;
};

// Runs gnuplot with --default-settings, so that a user's start-up file does not affect the figure.
std::optional<ChildResult> RunGnuplot(std::vector<std::string> arguments,
                                      const fs::path& directory) {
  arguments.insert(arguments.begin(), {"gnuplot", "--default-settings"});
  return RunProgram(arguments, directory, {{"LC_ALL", "C.UTF-8"}, {"TZ", "UTC"}});
}

// Replaces the creation time that cairo writes into the PDF by 1970. The new text has the same
// length, which keeps the file's offsets valid.
std::string WithFixedDate(std::string pdf) {
  constexpr std::string_view kKey = "/CreationDate (D:";
  constexpr std::string_view kEpoch = "19700101000000";
  const size_t key = pdf.find(kKey);
  if (key == std::string::npos || pdf.size() - key < kKey.size() + kEpoch.size()) return pdf;
  const size_t date = key + kKey.size();
  const bool digits = std::all_of(pdf.begin() + date,
                                  pdf.begin() + date + kEpoch.size(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  if (digits) pdf.replace(date, kEpoch.size(), kEpoch);
  return pdf;
}

}  // namespace

std::string GnuplotVersion() {
  const auto answer = RunGnuplot({"--version"}, ".");
  constexpr std::string_view kPrefix = "gnuplot ";
  if (!answer || answer->exit_code != 0 || !answer->output.starts_with(kPrefix)) return "";
  const auto terminals = RunGnuplot({"-e", "set terminal svg; set terminal pdfcairo"}, ".");
  if (!terminals || terminals->exit_code != 0) return "";
  const size_t end = std::min(answer->output.find('\n'), answer->output.size());
  return answer->output.substr(kPrefix.size(), end - kPrefix.size());
}

std::vector<std::string> DrawFigure(const Figure& figure,
                                    const fs::path& directory,
                                    const FigureStyle& style) {
  const std::string script = GnuplotScript(figure, style);
  std::vector<std::string> written = {figure.name + ".gp"};
  const fs::path script_path = directory / written[0];
  WriteFileAtomically(script_path, script);
  if (GnuplotVersion().empty()) return written;

  const DrawingDirectory drawing(directory.empty() ? fs::path(".") : directory);
  WriteFileAtomically(drawing.Path() / "figure.gp", script);
  const auto result = RunGnuplot({"figure.gp"}, drawing.Path());
  if (!result || result->exit_code != 0) {
    throw Error::Format("{}: gnuplot failed: {}",
                        script_path.string(),
                        !result                  ? "not found"
                        : result->output.empty() ? fmt::format("exit code {}", result->exit_code)
                                                 : Printable(result->output, 500));
  }
  for (const char* const extension : {".svg", ".pdf"}) {
    const std::string name = figure.name + extension;
    WriteFileAtomically(directory / name, WithFixedDate(ReadText(drawing.Path() / name)));
    written.push_back(name);
  }
  return written;
}

}  // namespace numsim
