// Every bad invocation must do the following: exit code 2, nothing on stdout, one line on stderr
// that names what is at fault, and no file made or changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/apps/program.h"

namespace numsim::apps {

struct BadCase {
  std::vector<std::string> arguments;
  std::vector<std::string> named;  // texts that the line has to contain
  Environment environment = {};
};

class BadInputTest : public ProgramTest {
 protected:
  void Expect(const BadCase& bad) const;
  void Expect(const std::vector<BadCase>& cases) const {
    for (const BadCase& bad : cases) Expect(bad);
  }

 private:
  // Every file and directory below the test's own, with the bytes of the files.
  std::map<std::string, std::string> Contents() const;
};

}  // namespace numsim::apps
