// Frames with a number and the time at which they were sent. A receiver can compute the missing frames and the latency.
import { frame } from './frames.mjs';
import { payload } from './payloads.mjs';

const PREFIX = '{"seq":"';
const SEQ = PREFIX.length;
const SENT = SEQ + 12 + '","sentUs":"'.length;
const template = (size) => {
  const head = `${PREFIX}${'0'.repeat(12)}","sentUs":"${'0'.repeat(16)}","tx":`;
  return Buffer.from(`${head}${payload(size - head.length - 1)}}`);
};

/** Returns microseconds on a clock that all processes of the machine share. */
export const nowUs = () => Number(process.hrtime.bigint() / 1000n);

/** Returns a function that creates frame number `seq`, sent now. `size` is the size of the payload, at least 300 bytes. */
export const stampedFrames = (size) => {
  const whole = frame(template(size));
  const head = whole.length - size;
  return (seq, sentUs = nowUs()) => {
    const copy = Buffer.from(whole);
    copy.latin1Write(String(seq).padStart(12, '0'), head + SEQ, 12);
    copy.latin1Write(String(sentUs).padStart(16, '0'), head + SENT, 16);
    return copy;
  };
};

/** Reads the number and the time from a payload, which is a Buffer or a string. */
export const readStamp = (data) => {
  const text = typeof data === 'string' ? data : data.latin1Slice(0, SENT + 16);
  return { seq: Number(text.slice(SEQ, SEQ + 12)), sentUs: Number(text.slice(SENT, SENT + 16)) };
};
