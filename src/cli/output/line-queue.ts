/** A line that waits. */
export type QueuedLine = string | Uint8Array;

/** A queue that knows its size in bytes. */
export interface LineQueue {
  readonly bytes: number;
  readonly length: number;
  push(line: QueuedLine): void;
  /** Takes the oldest line out. */
  shift(): QueuedLine | undefined;
}

/** How many lines may lie before the head until the array is cut: to shift a long array for each line would be slow. */
const slack = 1_024;

/** Makes an empty queue. */
export const lineQueue = (): LineQueue => {
  let lines: QueuedLine[] = [];
  let head = 0;
  let bytes = 0;
  return {
    get bytes() {
      return bytes;
    },
    get length() {
      return lines.length - head;
    },
    push: (line) => {
      lines.push(line);
      bytes += Buffer.byteLength(line);
    },
    shift: () => {
      const line = lines[head];
      if (line === undefined) return undefined;
      head += 1;
      bytes -= Buffer.byteLength(line);
      if (head > slack && head * 2 > lines.length) {
        lines = lines.slice(head);
        head = 0;
      }
      return line;
    },
  };
};
