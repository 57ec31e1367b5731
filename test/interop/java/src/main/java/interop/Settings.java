package interop;

import com.fasterxml.jackson.databind.JsonNode;
import org.redisson.config.Config;
import org.redisson.config.NameMapper;

/**
 * {"address":"redis://..."} or {"cluster":["redis://...", ...]}, and what may be left out: "watchdogTimeout" and
 * "fairWaitTimeout" in milliseconds, "prefix" put before every name by a NameMapper.
 */
final class Settings {
  static Config parse(JsonNode settings) {
    Config config = new Config().setThreads(4).setNettyThreads(4);
    if (settings.has("watchdogTimeout")) config.setLockWatchdogTimeout(settings.get("watchdogTimeout").asLong());
    if (settings.has("fairWaitTimeout")) config.setFairLockWaitTimeout(settings.get("fairWaitTimeout").asLong());
    if (settings.has("prefix")) config.setNameMapper(prefixed(settings.get("prefix").asText()));
    if (settings.has("cluster")) {
      var servers = config.useClusterServers().setMasterConnectionMinimumIdleSize(1).setSlaveConnectionMinimumIdleSize(1);
      settings.get("cluster").forEach((address) -> servers.addNodeAddress(address.asText()));
    } else {
      config.useSingleServer().setAddress(settings.get("address").asText()).setConnectionMinimumIdleSize(1);
    }
    return config;
  }

  private static NameMapper prefixed(String prefix) {
    return new NameMapper() {
      @Override
      public String map(String name) {
        return prefix + name;
      }

      @Override
      public String unmap(String name) {
        return name.substring(prefix.length());
      }
    };
  }

  private Settings() {}
}
