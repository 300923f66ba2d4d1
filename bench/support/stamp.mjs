// Frames that say which they are and when they were sent, so that a receiver can tell what is missing and how late it is.
import { frame } from './frames.mjs';
import { payload } from './payloads.mjs';

const PREFIX = '{"seq":"';
const SEQ = PREFIX.length;
const SENT = SEQ + 12 + '","sentUs":"'.length;
const template = (size) => {
  const head = `${PREFIX}${'0'.repeat(12)}","sentUs":"${'0'.repeat(16)}","tx":`;
  return Buffer.from(`${head}${payload(size - head.length - 1)}}`);
};

/** Microseconds on a clock that all processes of the machine share. */
export const nowUs = () => Number(process.hrtime.bigint() / 1000n);

/** Gives a function that makes the frame number `seq` of `size` bytes of payload, sent now. At least 300 bytes. */
export const stampedFrames = (size, kind = 'text') => {
  const whole = frame(template(size), kind);
  const head = whole.length - size;
  return (seq, sentUs = nowUs()) => {
    const made = Buffer.from(whole);
    made.latin1Write(String(seq).padStart(12, '0'), head + SEQ, 12);
    made.latin1Write(String(sentUs).padStart(16, '0'), head + SENT, 16);
    return made;
  };
};

/** Reads a payload's stamp, a Buffer's or a text's. */
export const readStamp = (data) => {
  const text = typeof data === 'string' ? data : data.latin1Slice(0, SENT + 16);
  return { seq: Number(text.slice(SEQ, SEQ + 12)), sentUs: Number(text.slice(SENT, SENT + 16)) };
};
