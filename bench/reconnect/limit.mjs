// Clients without a library: they write bytes to sockets of Node. They show the cost of the network, of Node and of this machine.
import { once } from 'node:events';
import { connect } from 'node:tls';

const sessions = new Map();

const connected = async (port) => {
  const options = { port, host: '127.0.0.1', servername: '', session: sessions.get(port) };
  const socket = connect(options).setNoDelay();
  socket.on('session', (session) => sessions.set(port, session));
  await once(socket, 'secureConnect');
  return socket;
};

const limitOf =
  (isStandby) =>
  ({ baseUrl, onOpen, onFrame }) => {
    const { port, pathname, host } = new URL(baseUrl);
    const [, streamPort] = pathname.split('/').map(Number);
    const post = `POST ${pathname}/v1/wss/tickets HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: bench-key\r\nContent-Length: 2\r\n\r\n{}`;

    const stream = (socket, tickets, ticket) => {
      const next = isStandby ? connected(streamPort) : undefined;
      const path = new URL(ticket.wss_url).pathname;
      let isOpen = false;
      const onData = (bytes) => {
        if (!isOpen) {
          isOpen = true;
          onOpen();
          const end = bytes.indexOf('\r\n\r\n') + 4;
          // A frame of more than 125 bytes has a header of four bytes.
          return onFrame(bytes.subarray(end + (bytes[end + 1] === 126 ? 4 : 2)));
        }
        if (bytes.indexOf(Buffer.from([0x88])) === -1) return undefined;
        socket
          .off('data', onData)
          .on('error', () => {})
          .end(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
        return void requestTicket(next ?? connected(streamPort), tickets);
      };
      socket.on('data', onData);
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: ${ticket.subprotocol}\r\nAuthorization: Bearer ${ticket.ticket}\r\n\r\n`,
      );
    };
    const requestTicket = async (opening, tickets) => {
      tickets.write(post);
      const [bytes] = await once(tickets, 'data');
      stream(await opening, tickets, JSON.parse(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4)));
    };
    void connected(Number(port)).then((tickets) => requestTicket(connected(streamPort), tickets));
  };

/** Reconnects in three round trips: the ticket is requested while the connection opens, which takes two; one for the upgrade. */
export const limit = limitOf(false);

/** Reconnects over standby connections in two round trips: one for the ticket, one for the upgrade. */
export const limitStandby = limitOf(true);
