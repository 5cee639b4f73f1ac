import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Typed values as text: {@code Type:Base64}, several divided by commas, named ones as {@code name=Type:Base64}.
 *
 * <p>The type is the simple name of the Java class, {@code bytes} or {@code null}; what is encoded is the UTF-8 of the
 * value's text, or the bytes.
 */
final class Values {
  private Values() {}

  static String write(Object value) {
    if (value == null) return "null:";
    if (value instanceof byte[] bytes) return "bytes:" + Base64.getEncoder().encodeToString(bytes);
    byte[] text = value.toString().getBytes(StandardCharsets.UTF_8);
    return value.getClass().getSimpleName() + ":" + Base64.getEncoder().encodeToString(text);
  }

  static String write(List<?> values) {
    return String.join(",", values.stream().map(Values::write).toList());
  }

  static String write(Map<String, ?> values) {
    return String.join(",", values.entrySet().stream().map(each -> each.getKey() + "=" + write(each.getValue())).toList());
  }

  static Object read(String text) {
    String[] parts = text.split(":", 2);
    byte[] bytes = Base64.getDecoder().decode(parts[1]);
    String value = new String(bytes, StandardCharsets.UTF_8);
    return switch (parts[0]) {
      case "null" -> null;
      case "bytes" -> bytes;
      case "String" -> value;
      case "Boolean" -> Boolean.valueOf(value);
      case "Byte" -> Byte.valueOf(value);
      case "Short" -> Short.valueOf(value);
      case "Integer" -> Integer.valueOf(value);
      case "Long" -> Long.valueOf(value);
      case "Float" -> Float.valueOf(value);
      case "Double" -> Double.valueOf(value);
      case "Character" -> value.charAt(0);
      default -> throw new IllegalArgumentException("no value of the type " + parts[0]);
    };
  }

  static List<Object> readAll(String text) {
    List<Object> values = new ArrayList<>();
    for (String each : text.isEmpty() ? new String[0] : text.split(",")) values.add(read(each));
    return values;
  }

  static Map<String, Object> readNamed(String text) {
    Map<String, Object> values = new LinkedHashMap<>();
    for (String each : text.isEmpty() ? new String[0] : text.split(",")) {
      String[] parts = each.split("=", 2);
      values.put(parts[0], read(parts[1]));
    }
    return values;
  }
}
