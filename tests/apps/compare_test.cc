// `numsim compare`: two real trainings, and bad input.
#include <filesystem>

#include "numsim/io/csv.h"
#include "numsim/plot/figure.h"
#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

class Compare : public BadInputTest {
 protected:
  void SetUp() override {
    BadInputTest::SetUp();
    Put("a.toml",
        "[model]\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 16\n[data]\nsize = 20000\n"
        "[train]\nsteps = 12\nbatch = 2\nvalid_every = 6\nvalid_batches = 1\n");
  }
  void TrainTwo() const {
    Output("train --threads 1 a.toml --out fp32");
    Output("train --threads 1 a.toml --out e5m2 --set optimizer.m=e5m2");
  }
  // The number after a name at the beginning of a line of summary.txt.
  double SummaryNumber(const std::string& out, const std::string& name) const {
    const std::string text = Bytes(Path(out) / "summary.txt");
    return std::stod(text.substr(text.find(name) + 28));
  }
};

TEST_F(Compare, PrintsLossesAndTheKeysThatDiffer) {
  TrainTwo();
  const std::vector<std::string> before = Names();
  const std::string out = Output("compare fp32 e5m2");
  for (const char* const directory : {"fp32", "e5m2"}) {
    EXPECT_THAT(out, HasSubstr(fmt::format("{}       12/12", directory)));
    for (const char* const loss : {"training loss", "validation loss"}) {
      EXPECT_THAT(out, HasSubstr(fmt::format(" {:.5g}", SummaryNumber(directory, loss))));
    }
  }
  EXPECT_THAT(out, HasSubstr("keys that differ  1     2\noptimizer.m       fp32  e5m2\n"));
  EXPECT_EQ(Names(), before);
}

TEST_F(Compare, DrawsTheCurvesWithTheirData) {
  TrainTwo();
  const std::string out = Output("compare fp32 e5m2 --out both.pdf");
  EXPECT_THAT(out, HasSubstr("\nwritten:\n  both.csv\n  both.gp\n"));
  const Table table = ReadCsv(Path("both.csv"));
  EXPECT_EQ(table.rows.size(), 2u * (12 + 3));
  EXPECT_EQ(table.Text(15, "label"), "optimizer.m=e5m2");
  EXPECT_EQ(table.Text(0, "loss"), ReadCsv(Path("fp32/train.csv")).Text(0, "loss"));
  EXPECT_EQ(std::filesystem::exists(Path("both.svg")), !GnuplotVersion().empty());
  Expect(BadCase{{"compare", "fp32", "e5m2", "--out", "both"}, {"both.csv", "exists", "--out"}});
}

TEST_F(Compare, BadInputIsOneLine) {
  Output("train --threads 1 a.toml --out fp32");
  std::filesystem::create_directory(Path("empty"));
  std::filesystem::create_directory(Path("result"));
  Put("result/settings.json", "{}");
  Expect(std::vector<BadCase>{
      {{"compare"}, {"DIR"}},
      {{"compare", "fp32"}, {"at least two"}},
      {{"compare", "fp32", "fp32"}, {"fp32", "given twice"}},
      {{"compare", "fp32", "nowhere"}, {"nowhere", "no such directory"}},
      {{"compare", "fp32", "empty"}, {"empty", "config.toml"}},
      {{"compare", "fp32", "a.toml"}, {"a.toml"}},
      {{"compare", "fp32", "result"}, {"result", "`numsim run`", "`numsim plot result`"}},
      {{"compare", "fp32", "empty", "--out", ""}, {"--out"}},
  });
}

}  // namespace
}  // namespace numsim::apps
