// Messages by HTTP and SMTP through libcurl, and to commands.
#ifndef MATINS_SEND_CURL_SENDER_H_
#define MATINS_SEND_CURL_SENDER_H_

#include <memory>

#include "alert/sender.h"

namespace matins {

// Its times, for dates and signatures, are of this machine's clock.
std::unique_ptr<AlertSender> NewCurlSender();

}  // namespace matins

#endif  // MATINS_SEND_CURL_SENDER_H_
