import java.time.Duration;
import java.util.List;
import java.util.UUID;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import org.springframework.data.redis.serializer.GenericJackson2JsonRedisSerializer;
import org.springframework.data.redis.serializer.RedisSerializer;

/**
 * A Spring service that shares a lease in Redis with {@code matins lock}: the same key, a value that
 * no other holding has ever had, and a release that compares it first.
 *
 * <p>The template decides what reaches Redis. {@link StringRedisTemplate} sends the value as it is. A
 * template with a JSON serialiser, as many services configure theirs for caching, sends it in quotes:
 * the script then compares {@code "token"} with {@code token}, finds them different and releases
 * nothing, without an error. The lease stays until it ends by itself, and the next run is turned away.
 *
 * <p>{@code Lease PORT take KEY SECONDS string|json} prints the value, or "held";
 * {@code Lease PORT release KEY VALUE string|json} prints how many leases it released.
 */
public final class Lease {
    private static final String PREFIX = "matins:lock:";
    private static final DefaultRedisScript<Long> RELEASE = new DefaultRedisScript<>(
            "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0", Long.class);

    private final RedisTemplate<String, ?> template;

    private Lease(RedisTemplate<String, ?> template) {
        this.template = template;
    }

    /** Of this template, nothing but its value serialiser is different from that of strings. */
    private static RedisTemplate<String, Object> json(JedisConnectionFactory redis) {
        RedisTemplate<String, Object> template = new RedisTemplate<>();
        template.setConnectionFactory(redis);
        template.setKeySerializer(RedisSerializer.string());
        template.setValueSerializer(new GenericJackson2JsonRedisSerializer());
        template.afterPropertiesSet();
        return template;
    }

    /** The value that releases it; null where somebody else holds it. */
    @SuppressWarnings("unchecked")
    String take(String key, Duration ttl) {
        String value = "service/" + UUID.randomUUID();
        Boolean ours = ((RedisTemplate<String, Object>) template).opsForValue().setIfAbsent(PREFIX + key, value, ttl);
        return Boolean.TRUE.equals(ours) ? value : null;
    }

    /** How many it released: 0 where the lease is no longer ours, or the comparison never could hold. */
    long release(String key, String value) {
        Long released = template.execute(RELEASE, List.of(PREFIX + key), value);
        return released == null ? 0 : released;
    }

    public static void main(String[] args) {
        JedisConnectionFactory redis = new JedisConnectionFactory(
                new RedisStandaloneConfiguration("127.0.0.1", Integer.parseInt(args[0])));
        redis.afterPropertiesSet();
        redis.start();
        Lease lease = new Lease(args[4].equals("json") ? json(redis) : new StringRedisTemplate(redis));
        if (args[1].equals("take")) {
            String value = lease.take(args[2], Duration.ofSeconds(Long.parseLong(args[3])));
            System.out.println(value == null ? "held" : value);
        } else {
            System.out.println(lease.release(args[2], args[3]));
        }
        redis.destroy();
    }
}
