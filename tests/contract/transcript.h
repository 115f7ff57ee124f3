// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include <pushrod/result.h>

namespace pushrod::contract {

/// One request that a server was asked, and what it answered.
struct Passage {
  std::string method;
  std::string target;  ///< with the query
  /// What the body must be; null: none. "<object>" stands for any object, "<string>" for any text
  /// and
  /// "<number>" for any number.
  boost::json::value shape;
  int status = 0;
  std::string source;  ///< where in the reference material the answer stands
  std::string body;    ///< to the letter
  int line = 0;        ///< in its file
};

/// Whether `body` is what the passage asks for: the same keys and values, save for placeholders.
[[nodiscard]] bool fits(const boost::json::value& shape, const boost::json::value& body);

/// What a server of one profile says, scene by scene, from <profile>.txt:
///   base PROFILE            scenes that this file lacks are those of another one
///   scene NAME              begins a scene; what follows is its passages, in order
///   > METHOD TARGET SHAPE   a request; SHAPE is JSON, or - for no body
///   < STATUS SOURCE BODY    its answer; BODY to the end of the line, or - for none
///   include NAME            the passages of another scene, as this profile has it
///   absent NAME REASON      the reference material has no bytes for this scene
/// Empty lines and lines that begin with # are skipped. Anything else is an error.
class Transcript {
 public:
  static Result<Transcript> load(const std::string& folder, const std::string& profile);

  /// The passages of a scene; failedPrecondition with the file's reason when it is absent.
  [[nodiscard]] Result<std::vector<Passage>> scene(const std::string& name) const;
  /// Every name that has passages or a reason, bases included.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct Step {
    std::string include;  ///< empty: a passage
    Passage passage;
  };

  struct Scene {
    std::vector<Step> steps;
    std::string absent;  ///< why it has no bytes
  };

  Status readFile(const std::string& folder, const std::string& profile, int depth);
  Status readLine(std::string_view line, int number, std::map<std::string, Scene>& own);
  Status append(const std::string& name, int depth, std::vector<Passage>& into) const;

  std::map<std::string, Scene> scenes_;
  std::string base_;     ///< of the file being read
  std::string current_;  ///< scene being read
};

}  // namespace pushrod::contract
