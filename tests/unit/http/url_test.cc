// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "http/client.h"

namespace pushrod::http {
namespace {

struct Good {
  const char* text;
  bool tls;
  const char *host, *port, *prefix, *authority;
};

TEST(Url, ReadsEveryFormOfAnEnginesAddress) {
  const Good forms[] = {
      {"http://10.0.0.11:8000", false, "10.0.0.11", "8000", "", "10.0.0.11:8000"},
      {"http://10.0.0.11:8000/", false, "10.0.0.11", "8000", "", "10.0.0.11:8000"},
      {"http://h/base//", false, "h", "80", "/base", "h:80"},
      {"HTTPS://Node-1.Example/a/b/", true, "node-1.example", "443", "/a/b", "node-1.example:443"},
      {"http://[::1]:81/p", false, "::1", "81", "/p", "[::1]:81"},
      {"http://[FE80::1%25eth0]", false, "fe80::1%eth0", "80", "", "[fe80::1%eth0]:80"},
      {"http://my_host", false, "my_host", "80", "", "my_host:80"},
  };
  for (const Good& form : forms) {
    const Result<Url> url = Url::parse(form.text);
    ASSERT_TRUE(url.ok()) << form.text << ": " << url.status().toString();
    EXPECT_EQ(url->tls, form.tls) << form.text;
    EXPECT_EQ(url->host, form.host) << form.text;
    EXPECT_EQ(url->port, form.port) << form.text;
    EXPECT_EQ(url->prefix, form.prefix) << form.text;
    EXPECT_EQ(url->authority(), form.authority) << form.text;
  }
}

TEST(Url, RefusesWhatItCannotReach) {
  for (const char* text : {"",
                           "10.0.0.1:8000",
                           "ftp://h",
                           "http://",
                           "http:///x",
                           "http://h:0",
                           "http://h:65536",
                           "http://h:",
                           "http://h:80x",
                           "http://::1:80",
                           "http://[::1",
                           "http://[host]:80",
                           "http://[::1]x",
                           "http://h/x?y=1",
                           "http://h#f",
                           "http://h/a b",
                           "http://h\r\nX: y/",
                           "http://h\xc3\xa4"}) {
    const Result<Url> url = Url::parse(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.status().code(), Code::kInvalidArgument) << text;
  }
}

TEST(Url, NeverRepeatsAPassword) {
  const Result<Url> url = Url::parse("http://user:hunter2@h:80/");
  ASSERT_FALSE(url.ok());
  EXPECT_EQ(url.status().message().find("hunter2"), std::string::npos);
}

}  // namespace
}  // namespace pushrod::http
