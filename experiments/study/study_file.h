// Reads a study from a TOML file, its only text; what a file cannot say stands in functions that it
// names. docs/study-files.md lists the keys.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "experiments/study/study.h"

namespace numsim::experiments::study {

template <typename T>
using Named = std::map<std::string, T, std::less<>>;

// The trials of a study that trains nothing, and the rows of one.
struct Measurements {
  std::function<std::vector<Trial>(const Settings&)> trials = {};
  std::function<Rows(const Settings&, const Trial&)> measure = {};
};

// The functions that a study file may name.
struct Functions {
  Named<std::function<Choice(const std::string&)>> choices = {};     // axis: other
  Named<std::function<Row(const TrainConfig&)>> cells = {};          // axis: cells
  Named<std::function<std::string(const Settings&)>> values = {};    // "$NAME" in arms, scale
  Named<std::function<double(const Frame& run)>> outcomes = {};      // claim: outcome
  Named<std::function<Evidence(const Results&)>> evidence = {};      // claim: evidence
  Named<std::function<std::string(const Results&)>> obstacles = {};  // claim: obstacle
  Named<Margin> margins = {};                                        // claim: margin, by its name
  Named<ProbeSpec> probes = {};
  std::vector<EndColumn> columns = {};                                  // of end-of-training
  Named<std::function<std::vector<Row>(const Results&)>> tables = {};   // rows of derived tables
  Named<std::function<Frame(const Results&, const Frame&)>> rows = {};  // figure: rows
  Named<std::function<Figure(const Results&)>> figures = {};            // figure: draw
  Named<FigureSource> several_figures = {};                             // the same
  Named<std::function<std::string(const Results&)>> scales = {};        // "$NAME" in scale
  // Of a study that trains nothing.
  Named<Measurements> measurements = {};                                            // measure
  Named<std::function<Evidence(const Results&, const Frame& rows)>> judges = {};    // claim: judge
  Named<std::function<std::string(const Results&, const Frame& rows)>> unfit = {};  // claim: unfit
  Named<std::function<Evidence(const Frame& rows, Evidence)>> bounds = {};          // claim: bound
};

// Returns the study of a file; members that are functions of the whole study are empty. `name` stands
// for the file in messages. Throws Error "NAME:LINE: ..." for a text that is not TOML, a key that is not
// known or missing, a value of another type, and a name that is in no table of `functions`.
Study ReadStudy(std::string_view text, std::string_view name, const Functions& functions);

// Returns the text of experiments/NAME/study.toml, with which the program was built.
std::string_view StudyText(std::string_view folder);

}  // namespace numsim::experiments::study
