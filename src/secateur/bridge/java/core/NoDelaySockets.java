package secateur.core;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.Socket;
import javax.net.SocketFactory;

/**
 * Sockets on which a question to Python is sent at once.
 *
 * Py4J writes what is longer than 8 kB in several pieces. Without this the last piece waits until Python's side has
 * acknowledged the one before, which it puts off for 40 ms, since it has nothing to say yet.
 */
final class NoDelaySockets extends SocketFactory {
  private final SocketFactory usual;

  private NoDelaySockets(SocketFactory usual) {
    this.usual = usual;
  }

  /** Lets a Py4J client, which cannot be told otherwise, make its connections by this. */
  static void use(Object client) throws Exception {
    Class owner = client.getClass();
    while (!owner.getName().equals("py4j.CallbackClient")) owner = owner.getSuperclass();
    Field field = owner.getDeclaredField("socketFactory");
    field.setAccessible(true);
    Object usual = field.get(client);
    if (!(usual instanceof NoDelaySockets)) field.set(client, new NoDelaySockets((SocketFactory) usual));
  }

  private static Socket undelayed(Socket socket) throws IOException {
    socket.setTcpNoDelay(true);
    return socket;
  }

  public Socket createSocket(String host, int port) throws IOException {
    return undelayed(usual.createSocket(host, port));
  }

  public Socket createSocket(String host, int port, InetAddress local, int localPort) throws IOException {
    return undelayed(usual.createSocket(host, port, local, localPort));
  }

  public Socket createSocket(InetAddress host, int port) throws IOException {
    return undelayed(usual.createSocket(host, port));
  }

  public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) throws IOException {
    return undelayed(usual.createSocket(host, port, local, localPort));
  }
}
