package interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.redisson.config.Config;
import org.redisson.config.NameMapper;

/**
 * {"address":"redis://..."} or {"cluster":["redis://...", ...]} or, for independent servers, {"servers":["redis://...", ...]};
 * and what may be left out: "watchdogTimeout" and "fairWaitTimeout" in milliseconds, "prefix" put before every name by a
 * NameMapper.
 */
final class Settings {
  /** One configuration, or one for each of the independent servers. */
  static List<Config> parse(JsonNode settings) {
    if (!settings.has("servers")) return List.of(common(settings));
    List<Config> configs = new ArrayList<>();
    for (JsonNode address : settings.get("servers")) {
      Config config = common(settings);
      // one that is down is given up soon
      config.useSingleServer().setAddress(address.asText()).setConnectionMinimumIdleSize(1).setTimeout(1000)
          .setConnectTimeout(1000).setRetryAttempts(0);
      configs.add(config);
    }
    return configs;
  }

  private static Config common(JsonNode settings) {
    Config config = new Config().setThreads(4).setNettyThreads(4);
    if (settings.has("watchdogTimeout")) config.setLockWatchdogTimeout(settings.get("watchdogTimeout").asLong());
    if (settings.has("fairWaitTimeout")) config.setFairLockWaitTimeout(settings.get("fairWaitTimeout").asLong());
    if (settings.has("prefix")) config.setNameMapper(prefixed(settings.get("prefix").asText()));
    if (settings.has("cluster")) {
      var servers = config.useClusterServers().setMasterConnectionMinimumIdleSize(1).setSlaveConnectionMinimumIdleSize(1);
      settings.get("cluster").forEach((address) -> servers.addNodeAddress(address.asText()));
    } else if (settings.has("address")) {
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
