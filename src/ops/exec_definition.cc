// What a call of `matins exec` says of its job, against what the store says.
#include <set>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "ops/exec.h"

namespace matins {
namespace {

using Json = nlohmann::json;

std::string ValueText(const Json& object, const std::string& key) {
  const auto it = object.find(key);
  if (it == object.end()) return "the default";
  return it->dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::vector<std::string> DifferencesOf(absl::string_view stored, absl::string_view given) {
  const Json there = Json::parse(stored.begin(), stored.end(), nullptr, false);
  const Json here = Json::parse(given.begin(), given.end(), nullptr, false);
  std::vector<std::string> lines;
  if (!there.is_object() || !here.is_object()) {
    if (stored != given) lines.push_back("the definition cannot be read by this program");
    return lines;
  }
  std::set<std::string> keys;
  for (const auto& [key, value] : there.items()) keys.insert(key);
  for (const auto& [key, value] : here.items()) keys.insert(key);
  for (const std::string& key : keys) {
    const std::string a = ValueText(there, key), b = ValueText(here, key);
    if (a != b) lines.push_back(absl::StrCat(key, ": ", a, " in the store, ", b, " here"));
  }
  return lines;
}

}  // namespace matins
