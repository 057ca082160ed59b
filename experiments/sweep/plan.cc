#include "experiments/sweep/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "experiments/runner/json_error.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/input_file.h"

namespace numsim::experiments::sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kEngines = "slurm, parallel, mpi, local";
constexpr const char* kResources = "cpus-per-task, mem, gpus, time, partition, account";
constexpr const char* kFields =
    "engine, experiment, arguments, trials, rounds, tasks, costs, at_once, hosts, resources, wrapper, "
    "program, directory";
constexpr size_t kMost = 1u << 20;

bool IsIn(std::string_view name, std::string_view list) {
  return fmt::format(", {},", list).find(fmt::format(", {},", name)) != std::string::npos;
}

// Reads one field after the other from the object of a file.
class Reader {
 public:
  Reader(const Json& json, const std::filesystem::path& path) : json_(json), path_(path) {
    if (!json.is_object()) throw Error::Format("{}: expected an object", path.string());
    for (const auto& [name, value] : json.items()) {
      if (IsIn(name, kFields)) continue;
      throw Error::Format("{}: {}", path.string(), NotOneOf("field", name, kFields).what());
    }
  }

  void Read(const char* name, std::string& text) const {
    const Json& value = At(name);
    if (!value.is_string()) throw Wrong(name, "text", value);
    value.get_to(text);
  }
  void Read(const char* name, size_t& number) const {
    const Json& value = At(name);
    if (!value.is_number_unsigned()) throw Wrong(name, "a whole number", value);
    value.get_to(number);
  }
  void Read(const char* name, std::vector<std::string>& texts) const {
    const Json& value = At(name);
    const auto is_text = [](const Json& element) { return element.is_string(); };
    if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_text)) {
      throw Wrong(name, "a list of texts", value);
    }
    value.get_to(texts);
  }
  void Read(const char* name, std::vector<size_t>& numbers) const {
    const Json& value = At(name);
    const auto is_number = [](const Json& element) { return element.is_number_unsigned(); };
    if (!value.is_array() || value.empty() || !std::all_of(value.begin(), value.end(), is_number)) {
      throw Wrong(name, "a list of whole numbers", value);
    }
    value.get_to(numbers);
  }
  void Read(const char* name, std::map<std::string, std::string>& texts) const {
    const Json& value = At(name);
    const auto is_text = [](const Json& element) { return element.is_string(); };
    if (!value.is_object() || !std::all_of(value.begin(), value.end(), is_text)) {
      throw Wrong(name, "an object of texts", value);
    }
    value.get_to(texts);
  }

 private:
  const Json& At(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) throw Error::Format("{}: has no field {}", path_.string(), name);
    return *found;
  }
  Error Wrong(const char* name, const char* expected, const Json& value) const {
    return Error::Format(
        "{}: {}: expected {}, found {}", path_.string(), name, expected, value.dump());
  }

  const Json& json_;
  const std::filesystem::path& path_;
};

void CheckNumber(const char* name, size_t number, size_t most) {
  if (number >= 1 && number <= most) return;
  throw Error::Format("{}: expected a number from 1 to {}, found {}", name, most, number);
}

void CheckPath(const char* name, const std::string& path) {
  if (path.starts_with('/')) return;
  throw Error::Format("{}: expected an absolute path, found '{}'", name, path);
}

// Returns the number of trials of the largest round.
size_t CheckRounds(const Plan& plan) {
  if (plan.rounds.empty()) return plan.trials;
  for (const size_t trials : plan.rounds) CheckNumber("rounds", trials, plan.trials);
  if (std::accumulate(plan.rounds.begin(), plan.rounds.end(), size_t{0}) != plan.trials) {
    throw Error::Format("rounds: expected {} trials in all", plan.trials);
  }
  return *std::max_element(plan.rounds.begin(), plan.rounds.end());
}

// sbatch reads these values from comments of a script, where no quoting is safe.
void CheckResources(const Plan& plan) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:,=+@/-";
  if (plan.engine != kSlurm && !plan.resources.empty()) {
    throw Error::Format("{}: only with slurm", plan.resources.begin()->first);
  }
  for (const auto& [name, value] : plan.resources) {
    if (!IsIn(name, kResources)) throw NotOneOf("resources:", name, kResources);
    if (!value.empty() && value.find_first_not_of(kAllowed) == std::string::npos) continue;
    throw Error::Format(
        "{}: '{}': expected letters, digits and any of _.:,=+@/- alone", name, value);
  }
}

}  // namespace

size_t TasksOfRound(const Plan& plan, size_t round) {
  return plan.rounds.empty() ? plan.tasks : std::min(plan.tasks, plan.rounds.at(round - 1));
}

void CheckPlan(const Plan& plan) {
  if (!IsIn(plan.engine, kEngines)) throw NotOneOf("engine:", plan.engine, kEngines);
  if (plan.experiment.empty()) throw Error("experiment: expected a name, found ''");
  CheckNumber("trials", plan.trials, kMost);
  const size_t most = CheckRounds(plan);
  if (plan.tasks > most) {
    throw Error::Format("tasks: {} are more than the {} trials{}; each task needs one",
                        plan.tasks,
                        most,
                        plan.rounds.empty() ? "" : " of the largest round");
  }
  CheckNumber("tasks", plan.tasks, most);
  const bool has_processes = plan.engine == kLocal || plan.engine == kMpi;
  CheckNumber("at_once", plan.at_once, has_processes ? kMost : 1);
  if ((plan.engine == kParallel) == plan.hosts.empty()) {
    throw Error::Format("hosts: expected {}, found '{}'",
                        plan.engine == kParallel ? "hosts, as in :,node1" : "none without parallel",
                        plan.hosts);
  }
  CheckResources(plan);
  if (plan.wrapper.find('\n') != std::string::npos) throw Error("wrapper: expected one line");
  CheckPath("program", plan.program);
  CheckPath("directory", plan.directory);
}

void WritePlan(const Plan& plan, const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kFolder / kPlanFile;
  Json json;
  json["engine"] = plan.engine;
  json["experiment"] = plan.experiment;
  json["arguments"] = plan.arguments;
  json["trials"] = plan.trials;
  if (!plan.rounds.empty()) json["rounds"] = plan.rounds;
  json["tasks"] = plan.tasks;
  if (!plan.costs.empty()) json["costs"] = plan.costs;
  json["at_once"] = plan.at_once;
  json["hosts"] = plan.hosts;
  json["resources"] = plan.resources;
  if (!plan.wrapper.empty()) json["wrapper"] = plan.wrapper;
  json["program"] = plan.program;
  json["directory"] = plan.directory;
  try {
    WriteFileAtomically(path, json.dump(2) + "\n");
  } catch (const Json::exception&) {  // Invalid UTF-8 is the only thing that dump rejects.
    throw Error::Format("{}: an argument is not valid UTF-8", path.string());
  }
}

Plan ReadPlan(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kFolder / kPlanFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw Error::Format("{}: holds no sweep: there is no {}", directory.string(), path.string());
  }
  Json json;
  try {
    json = Json::parse(numsim::ReadText(path));
  } catch (const Json::exception& error) {
    throw Error::Format("{}: expected the plan of a sweep, found: {}",
                        path.string(),
                        PlainJsonMessage(error.what()));
  }
  Plan plan;
  const Reader reader(json, path);
  reader.Read("engine", plan.engine);
  reader.Read("experiment", plan.experiment);
  reader.Read("arguments", plan.arguments);
  reader.Read("trials", plan.trials);
  if (json.contains("rounds")) reader.Read("rounds", plan.rounds);
  reader.Read("tasks", plan.tasks);
  if (json.contains("costs")) reader.Read("costs", plan.costs);
  reader.Read("at_once", plan.at_once);
  reader.Read("hosts", plan.hosts);
  reader.Read("resources", plan.resources);
  if (json.contains("wrapper")) reader.Read("wrapper", plan.wrapper);
  reader.Read("program", plan.program);
  reader.Read("directory", plan.directory);
  try {
    CheckPlan(plan);
  } catch (const Error& error) {
    throw Error::Format("{}: {}", path.string(), error.what());
  }
  return plan;
}

}  // namespace numsim::experiments::sweep
