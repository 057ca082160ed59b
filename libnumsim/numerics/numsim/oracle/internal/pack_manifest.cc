#include "numsim/oracle/internal/pack_manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "numsim/base/build_info.h"
#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/oracle/operation.h"

namespace numsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kManifestVersion = 1;

struct TextField {
  const char* key;
  std::string OperationRequest::*member;
};
constexpr TextField kTextFields[] = {{"operation", &OperationRequest::op},
                                     {"format", &OperationRequest::format},
                                     {"format_b", &OperationRequest::format_b},
                                     {"format_c", &OperationRequest::format_c},
                                     {"to", &OperationRequest::to},
                                     {"scale_format", &OperationRequest::scale_format},
                                     {"accumulator", &OperationRequest::accumulation},
                                     {"scale_rule", &OperationRequest::scale_rule},
                                     {"profile", &OperationRequest::profile},
                                     {"scale_rounding", &OperationRequest::scale_rounding}};

Json RequestObject(const OperationRequest& request) {
  Json object;
  for (const TextField& field : kTextFields) {
    const std::string& text = request.*field.member;
    if (!text.empty()) object[field.key] = text;
  }
  if (request.rounding) {
    object["rounding"] = ToString(request.rounding->mode);
    if (request.rounding->mode == RoundingMode::kStochastic) {
      object["sr_variant"] = ToString(request.rounding->variant);
      object["sr_bits"] = request.rounding->random_bits;
    }
  }
  if (request.any_operands) object["any_operands"] = true;
  if (request.overflow) object["overflow"] = ToString(*request.overflow);
  if (request.tininess) object["tininess"] = ToString(*request.tininess);
  if (request.invalid_integer) object["invalid_integer"] = ToString(*request.invalid_integer);
  if (request.length > 0) object["length"] = request.length;
  if (request.tensor_scale) object["tensor_scale"] = true;
  if (request.block > 0) object["block"] = request.block;
  return object;
}

OperationRequest ParseRequest(const Json& object) {
  OperationRequest request;
  for (const TextField& field : kTextFields) request.*field.member = object.value(field.key, "");
  if (object.contains("rounding")) {
    Rounding rounding;
    rounding.mode = ParseRoundingMode(object.at("rounding").get<std::string>());
    rounding.variant = ParseStochasticVariant(object.value("sr_variant", "a"));
    rounding.random_bits = object.value("sr_bits", rounding.random_bits);
    request.rounding = rounding;
  }
  if (object.contains("overflow")) {
    request.overflow = ParseOverflow(object.at("overflow").get<std::string>());
  }
  if (object.contains("tininess")) {
    request.tininess = ParseTininess(object.at("tininess").get<std::string>());
  }
  if (object.contains("invalid_integer")) {
    request.invalid_integer = ParseInvalidInteger(object.at("invalid_integer").get<std::string>());
  }
  request.any_operands = object.value("any_operands", false);
  request.length = object.value("length", 0);
  request.tensor_scale = object.value("tensor_scale", false);
  request.block = object.value("block", 0);
  return request;
}

// Describes the columns: [{"name": "a", "role": "input", "bits": 8, "kind": "code", "format":
// "e4m3fn"}, ...].
Json ColumnList(const CaseColumns& columns) {
  Json list = Json::array();
  for (size_t i = 0; i < columns.all.size(); ++i) {
    const Column& column = columns.all[i];
    Json object;
    object["name"] = column.name;
    object["role"] = i < columns.inputs ? "input" : i < columns.WithoutFlags() ? "result" : "flags";
    object["bits"] = column.bits;
    if (i < columns.WithoutFlags()) object["kind"] = std::string(ToString(column.kind));
    if (column.format) object["format"] = column.format->name;
    if (column.is_signed) object["signed"] = true;
    list.push_back(std::move(object));
  }
  return list;
}

PackFile ParseFile(const Json& object) {
  PackFile file;
  file.path = object.at("path").get<std::string>();
  const bool plain = !file.path.empty() && file.path.find('/') == std::string::npos &&
                     file.path.find('\0') == std::string::npos && file.path[0] != '.';
  if (!plain) throw Error::Format("path '{}' is not a plain file name", Printable(file.path));
  file.cases = object.at("cases").get<uint64_t>();
  file.sha256 = object.at("sha256").get<std::string>();
  file.request = ParseRequest(object.at("request"));
  return file;
}

}  // namespace

std::string PackManifestText(std::string_view set,
                             const PackForm& form,
                             std::span<const PackEntry> entries,
                             std::span<const WrittenFile> files) {
  NUMSIM_CHECK(entries.size() == files.size(), "{}, {}", entries.size(), files.size());
  Json manifest;
  manifest["manifest_version"] = kManifestVersion;
  manifest["pack"] = set;
  manifest["form"] = form.name;
  manifest["numsim_version"] = BuildVersion();
  manifest["files"] = Json::array();
  for (size_t i = 0; i < files.size(); ++i) {
    Json object;
    object["path"] = files[i].path;
    object["bytes"] = files[i].bytes;
    object["sha256"] = files[i].sha256;
    object["cases"] = files[i].cases;
    object["level"] = ToString(entries[i].level);
    if (entries[i].level.kind == CaseLevel::Kind::kRandom) object["seed"] = entries[i].level.seed;
    object["request"] = RequestObject(entries[i].request);
    object["columns"] = ColumnList(ColumnsOf(*MakeOperation(entries[i].request)));
    object["command"] = PackCommand(entries[i], form);
    manifest["files"].push_back(std::move(object));
  }
  return manifest.dump(2) + "\n";
}

Pack ParsePackManifest(std::string_view text, std::string_view file) {
  Pack pack;
  std::string where;  // the entry being read, for messages
  try {
    const Json manifest = Json::parse(text);
    const int version = manifest.at("manifest_version").get<int>();
    if (version != kManifestVersion) {
      throw Error::Format("manifest_version is {}, expected {}", version, kManifestVersion);
    }
    pack.form = &FindPackForm(manifest.value("form", "hex"));  // the one form before 0.2.0
    for (const Json& object : manifest.at("files")) {
      where = fmt::format("files[{}]: ", pack.files.size());
      pack.files.push_back(ParseFile(object));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error::Format("{}: {}{}", file, where, Printable(error.what(), 200));
  } catch (const Error& error) {
    throw Error::Format("{}: {}{}", file, where, error.what());
  }
  if (pack.files.empty()) throw Error::Format("{}: lists no files", file);
  return pack;
}

}  // namespace numsim
