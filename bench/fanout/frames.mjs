export const FRAMES_PER_SECOND = 500;
export const FRAME_BYTES = 1_024;

/** Returns a transaction as JSON text of exactly so many bytes, with its number. */
export const textOf = (n, bytes) => {
  const head = `{"n":${n},"from":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","value":"0x16345785d8a0000","input":"0x`;
  return `${head}${'0123456789abcdef'.repeat(bytes / 16).slice(0, bytes - head.length - 2)}"}`;
};
