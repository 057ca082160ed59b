#include "tests/sweep/sweep_test.h"

#include <sys/wait.h>

#include <cstdlib>

#include "numsim/io/input_file.h"

namespace numsim::apps {

void SweepTest::SetUp() {
  ProgramTest::SetUp();
  path_ = std::getenv("PATH");
  const std::filesystem::path programs = Directory() / "programs";
  std::filesystem::create_directory(programs);
  std::ofstream(programs / "gnuplot") << "#!/bin/sh\nexit 1\n";
  std::filesystem::permissions(programs / "gnuplot", std::filesystem::perms::owner_all);
  ::setenv("PATH", (programs.string() + ":" + path_).c_str(), 1);
  // Open MPI asks for these where a test runs as root on few cores.
  for (const char* const name : {"OMPI_ALLOW_RUN_AS_ROOT",
                                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                 "OMPI_MCA_rmaps_base_oversubscribe"}) {
    ::setenv(name, "1", 1);
  }
}

void SweepTest::TearDown() {
  ::setenv("PATH", path_.c_str(), 1);
  ProgramTest::TearDown();
}

Outcome SweepTest::Sweep(const std::string& options) const {
  return Numsim(Words("sweep " + options_ + " " + options));
}

int SweepTest::Bash(const std::string& command) const {
  EXPECT_EQ(command.find('"'), std::string::npos);
  const std::string whole = "cd '" + Directory().string() + "' && bash -c \"" + command + "\" >'" +
                            Directory().string() + "/bash.log' 2>&1";
  const int status = std::system(whole.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string SweepTest::Text(const std::string& name) const { return ReadText(Directory() / name); }

void SweepTest::ExpectResultsOfOneProcess(const std::string& sweep, const std::string& one) const {
  ASSERT_EQ(Numsim(Words("run " + options_ + " --out " + one)).exit_code, 0);
  for (const std::string file :
       {"variance.csv", "slopes.csv", "dimension_ratios.csv", "verdicts.csv", "summary.txt"}) {
    const std::filesystem::path name = file;
    EXPECT_EQ(Text(sweep / name), Text(one / name)) << file;
  }
}

void SweepTest::Edit(const std::string& name,
                     const std::string& from,
                     const std::string& to) const {
  std::string text = Text(name);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " is not in " << name;
  std::ofstream(Directory() / name) << text.replace(at, from.size(), to);
}

}  // namespace numsim::apps
