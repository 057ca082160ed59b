// Runs the numsim program as a user does: arguments in, exit code and both streams out.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "numsim/io/array.h"
#include "tests/support/io_fixture.h"

namespace numsim::apps {

struct Outcome {
  int exit_code = -1;  // 128 + signal where a signal ended the program
  std::string out, err;

  std::vector<std::string> Lines() const;  // of `out`
};

using Environment = std::map<std::string, std::string>;

// Runs the program of NUMSIM_PROGRAM with `arguments` in `directory`, nothing on stdin, and
// `environment` on top of this process's. `stdout_path`: where stdout goes instead of `out`.
Outcome RunProgram(const std::filesystem::path& directory,
                   const std::vector<std::string>& arguments,
                   const Environment& environment = {},
                   const std::string& stdout_path = "");

// "cast a.npy b.npy" as a list of words.
std::vector<std::string> Words(const std::string& text);

// Tests in a directory of their own; arguments may name files in it without a path.
class ProgramTest : public IoTest {
 protected:
  Outcome Numsim(const std::vector<std::string>& arguments,
                 const Environment& environment = {}) const {
    return RunProgram(Directory(), arguments, environment);
  }
  Outcome Numsim(const std::string& words, const Environment& environment = {}) const {
    return RunProgram(Directory(), Words(words), environment);
  }

  // stdout of a run that must succeed and say nothing on stderr.
  std::string Output(const std::string& words) const;

  // Writes NAME in the test's directory.
  template <typename T>
  void PutNpy(const std::string& name,
              ElementType type,
              const std::vector<T>& elements,
              std::vector<size_t> shape = {}) const {
    if (shape.empty()) shape = {elements.size()};
    PutArray(name, type, std::move(shape), elements.data(), elements.size() * sizeof(T));
  }
  Array GetNpy(const std::string& name) const;

 private:
  void PutArray(const std::string& name,
                ElementType type,
                std::vector<size_t> shape,
                const void* data,
                size_t bytes) const;
};

}  // namespace numsim::apps
