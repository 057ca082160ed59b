#include "numsim/io/manifest.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "numsim/base/require.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/input_file.h"
#include "numsim/io/shared/sha256.h"

namespace numsim {
namespace {

using Json = nlohmann::ordered_json;

Json ToObject(const NamedTexts& texts) {
  Json object = Json::object();
  for (const auto& [name, text] : texts) {
    NUMSIM_REQUIRE(!object.contains(name), "'{}' twice in a manifest", name);
    object[name] = text;
  }
  return object;
}

Json ToList(const std::vector<OutputFile>& outputs) {
  Json list = Json::array();
  for (const OutputFile& output : outputs) {
    Json object;
    object["path"] = output.path;
    object["bytes"] = output.bytes;
    object["sha256"] = output.sha256;
    list.push_back(std::move(object));
  }
  return list;
}

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

int UsableCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

void WriteManifest(const std::filesystem::path& path, const Manifest& manifest) {
  Json json;
  json["command"] = manifest.command;
  json["experiment"] = manifest.experiment;
  json["options"] = ToObject(manifest.options);
  json["policies"] = ToObject(manifest.policies);
  if (!manifest.claims.empty()) json["claims"] = ToObject(manifest.claims);
  if (!manifest.measurements.empty()) json["measurements"] = ToObject(manifest.measurements);
  if (!manifest.allowed.empty()) json["allowed"] = ToObject(manifest.allowed);
  json["seeds"] = manifest.seeds;
  json["git_commit"] = manifest.git_commit;
  json["compiler"] = manifest.compiler;
  json["build_type"] = manifest.build_type;
  json["backend"] = manifest.backend;
  json["simd_target"] = manifest.simd_target;
  json["versions"] = ToObject(manifest.versions);
  json["host"]["cpu"] = manifest.host.cpu;
  json["host"]["cores"] = manifest.host.cores;
  json["host"]["os"] = manifest.host.os;
  json["threads"] = manifest.threads;
  json["started"] = manifest.started;
  json["ended"] = manifest.ended;
  json["outputs"] = ToList(manifest.outputs);
  WriteFileAtomically(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

HostInfo DescribeHost() {
  HostInfo host{CpuModel(), UsableCores(), ""};
  utsname system{};
  if (::uname(&system) == 0) {
    host.os = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  }
  return host;
}

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::vector<OutputFile> ReadOutputs(const std::filesystem::path& manifest) {
  std::vector<OutputFile> outputs;
  try {
    const Json json = Json::parse(ReadText(manifest));
    for (const Json& output : json.at("outputs")) {
      outputs.push_back({output.at("path"), output.at("bytes"), output.at("sha256")});
    }
  } catch (const Json::exception& error) {
    const std::string_view what = error.what();  // begins with "[json.exception.KIND.NUMBER] "
    throw Error::Format("{}: expected the manifest of a numsim run, found: {}",
                        manifest.string(),
                        what.substr(what.find("] ") + 2));
  }
  return outputs;
}

bool CheckOutput(const std::filesystem::path& directory,
                 const std::vector<OutputFile>& listed,
                 std::string_view name) {
  const auto is_named = [&](const OutputFile& output) { return output.path == name; };
  const auto entry = std::find_if(listed.begin(), listed.end(), is_named);
  if (entry == listed.end()) return false;
  if (DescribeOutput(directory, name).sha256 == entry->sha256) return true;
  throw Error::Format(
      "{}: changed since the run that wrote it: its SHA-256 is not the one in manifest.json",
      (directory / name).string());
}

OutputFile DescribeOutput(const std::filesystem::path& directory, std::string_view path) {
  const std::filesystem::path file = directory / path;
  std::string digest = Sha256Hex(file);  // first, because its error message is better
  return {std::string(path), std::filesystem::file_size(file), std::move(digest)};
}

}  // namespace numsim
