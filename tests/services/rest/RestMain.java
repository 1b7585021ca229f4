import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.HTTPRequest;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.apache.iceberg.rest.RESTResponse;
import org.apache.iceberg.rest.credentials.ImmutableCredential;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.rest.responses.LoadTableResponse;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.ContextHandlerCollection;
import org.eclipse.jetty.servlet.FilterHolder;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * Iceberg's own REST fixture over its JDBC catalog in SQLite, on loopback: {@code RestMain PORT FOLDER}. The catalog at /NAME for each of the contexts below is
 * one of its own; those whose name starts with "closed" want a token of OAuth2 client credentials. With SLUICE_TEST_AWS_ENDPOINT set, /vending hands out credentials
 * and settings for tables in S3; it keeps their metadata files on the local disk, where no client looks for them.
 */
public class RestMain {
  public static void main(String[] arguments) throws Exception {
    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost("127.0.0.1");
    connector.setPort(Integer.parseInt(arguments[0]));
    server.addConnector(connector);
    ContextHandlerCollection contexts = new ContextHandlerCollection();
    for (int number = 0; number < 24; number++) {
      contexts.addHandler(context("open" + number, arguments[1]));
      contexts.addHandler(context("closed" + number, arguments[1]));
    }
    if (System.getenv("SLUICE_TEST_AWS_ENDPOINT") != null) {
      contexts.addHandler(context("vending", arguments[1]));
    }
    server.setHandler(contexts);
    server.start();
    server.join();
  }

  private static ServletContextHandler context(String name, String folder) {
    JdbcCatalog catalog = new JdbcCatalog();
    String database = "jdbc:sqlite:" + folder + "/" + name + ".db";
    String warehouse = "file://" + folder + "/" + name;
    catalog.initialize(
        name,
        Map.of("uri", database, "jdbc.schema-version", "V1", "clients", "1", "warehouse", warehouse, "io-impl", LocalFiles.class.getName()));
    ServletContextHandler context = new ServletContextHandler();
    context.setContextPath("/" + name);
    RESTCatalogAdapter adapter = name.equals("vending") ? new Vending(catalog) : new RESTCatalogAdapter(catalog);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(adapter)), "/*");
    context.addFilter(new FilterHolder(new WithoutContext()), "/*", EnumSet.of(DispatcherType.REQUEST));
    if (name.startsWith("closed")) {
      context.addFilter(new FilterHolder(new TokenWanted()), "/*", EnumSet.of(DispatcherType.REQUEST));
    }
    return context;
  }

  /** To a client that asks for it, a table comes with where its storage is and how it is opened. */
  static class Vending extends RESTCatalogAdapter {
    Vending(JdbcCatalog catalog) {
      super(catalog);
    }

    @Override
    protected <T extends RESTResponse> T execute(
        HTTPRequest request, Class<T> type, Consumer<ErrorResponse> errors, Consumer<Map<String, String>> headers) {
      T response = super.execute(request, type, errors, headers);
      if (!(response instanceof LoadTableResponse) || !asks(request)) {
        return response;
      }
      LoadTableResponse loaded = (LoadTableResponse) response;
      Map<String, String> keys = Map.of("s3.access-key-id", "vended", "s3.secret-access-key", "secret", "s3.session-token", "session");
      Map<String, String> settings =
          Map.of("s3.endpoint", System.getenv("SLUICE_TEST_AWS_ENDPOINT"), "s3.path-style-access", "true", "client.region", "eu-central-1");
      return type.cast(
          LoadTableResponse.builder()
              .withTableMetadata(loaded.tableMetadata())
              .addAllConfig(settings)
              .addCredential(ImmutableCredential.builder().prefix("s3://lake").config(keys).build())
              .build());
    }

    private static boolean asks(HTTPRequest request) {
      return request.headers().entries().stream()
          .anyMatch(header -> header.name().equalsIgnoreCase("X-Iceberg-Access-Delegation") && header.value().equals("vended-credentials"));
    }
  }

  /** The fixture takes the whole path of a request for that of the protocol. */
  static class WithoutContext implements Filter {
    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain) throws IOException, ServletException {
      HttpServletRequest asked = (HttpServletRequest) request;
      HttpServletRequestWrapper stripped = new HttpServletRequestWrapper(asked) {
        @Override
        public String getRequestURI() {
          return asked.getRequestURI().substring(asked.getContextPath().length());
        }
      };
      chain.doFilter(stripped, response);
    }
  }

  /** The fixture hands out tokens and does not look at them. */
  static class TokenWanted implements Filter {
    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain) throws IOException, ServletException {
      HttpServletRequest asked = (HttpServletRequest) request;
      String token = "Bearer client-credentials-token:sub=sluice";
      if (asked.getPathInfo().equals("/v1/oauth/tokens") || token.equals(asked.getHeader("Authorization"))) {
        chain.doFilter(request, response);
      } else {
        ((HttpServletResponse) response).setStatus(401);
      }
    }
  }

  /** Files on the local disk, without Hadoop. */
  public static class LocalFiles implements FileIO {
    private static File file(String location) {
      if (location.startsWith("s3:")) {
        return new File(System.getProperty("java.io.tmpdir"), location.substring("s3://".length()));
      }
      return location.startsWith("file:") ? new File(URI.create(location).getPath()) : new File(location);
    }

    @Override
    public InputFile newInputFile(String location) {
      InputFile input = org.apache.iceberg.Files.localInput(file(location));
      return new InputFile() {
        @Override
        public long getLength() {
          return input.getLength();
        }

        @Override
        public org.apache.iceberg.io.SeekableInputStream newStream() {
          return input.newStream();
        }

        @Override
        public String location() {
          return location;
        }

        @Override
        public boolean exists() {
          return input.exists();
        }
      };
    }

    @Override
    public OutputFile newOutputFile(String location) {
      file(location).getParentFile().mkdirs();
      OutputFile output = org.apache.iceberg.Files.localOutput(file(location));
      return new OutputFile() {
        @Override
        public org.apache.iceberg.io.PositionOutputStream create() {
          return output.create();
        }

        @Override
        public org.apache.iceberg.io.PositionOutputStream createOrOverwrite() {
          return output.createOrOverwrite();
        }

        @Override
        public String location() {
          return location;
        }

        @Override
        public InputFile toInputFile() {
          return newInputFile(location);
        }
      };
    }

    @Override
    public void deleteFile(String location) {
      try {
        Files.deleteIfExists(Path.of(file(location).getPath()));
      } catch (IOException error) {
        throw new java.io.UncheckedIOException(error);
      }
    }
  }
}
