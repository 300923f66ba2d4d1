import { Agent, type ClientRequestArgs } from 'node:http';
import type { Socket } from 'node:net';

/** An agent that keeps hold of the last socket it opened: what happens to networks can then be done to it. */
export class HeldAgent extends Agent {
  private socket: Socket | undefined;

  override createConnection(options: ClientRequestArgs, callback?: (error: Error | null, socket: Socket) => void) {
    const socket = super.createConnection(options, callback as never) as Socket;
    this.socket = socket;
    return socket;
  }

  /** Breaks the connection off, as a network does: without a close frame. */
  drop(): void {
    this.socket?.destroy();
  }

  /** Writes a message onto the connection, as a broken proxy might: the library itself sends none. */
  scribble(): void {
    this.socket?.write(textMessage('hello'));
  }
}

/** Makes a text message of a client (RFC 6455, section 5.2), under a mask of zeros. */
const textMessage = (text: string): Buffer =>
  Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);
