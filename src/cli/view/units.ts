const integer = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** Formats a whole number: `1,842`. */
export const count = (number: number): string => integer.format(number);

/** Formats a number with one decimal below 100: `20.1`, `1,842`. */
export const amount = (number: number): string => (number < 99.95 ? oneDigit : integer).format(number);

/** Formats a number of things: `1 frame`, `20 frames`. */
export const counted = (number: number, thing: string): string => `${count(number)} ${thing}${number === 1 ? '' : 's'}`;

/** Formats a number of bytes, with decimal units: `421 B`, `8.4 kB`. */
export const bytes = (number: number): string => {
  if (number < 1_000) return `${count(number)} B`;
  const step = Math.min(4, Math.floor(Math.log10(number) / 3));
  return `${amount(number / 1_000 ** step)} ${'kMGT'.charAt(step - 1)}B`;
};

/** Formats a duration: `12 ms`, `3.2 s`, `30 s`, `1 min 05 s`, `2 h 03 min`. */
export const duration = (ms: number): string => {
  if (ms < 1_000) return `${count(ms)} ms`;
  if (ms < 9_950) return `${amount(ms / 1_000)} s`;
  if (ms < 59_500) return `${count(ms / 1_000)} s`;
  const s = Math.round(ms / 1_000);
  const [h, min] = [Math.floor(s / 3_600), Math.floor(s / 60) % 60];
  return h === 0 ? `${min} min ${padded(s % 60)} s` : `${count(h)} h ${padded(min)} min`;
};

/** Formats a duration as on a stopwatch: `0:07`, `1:02:03`. */
export const stopwatch = (ms: number): string => {
  const s = Math.max(0, Math.floor(ms / 1_000));
  const [h, min] = [Math.floor(s / 3_600), Math.floor(s / 60) % 60];
  return h === 0 ? `${min}:${padded(s % 60)}` : `${h}:${padded(min)}:${padded(s % 60)}`;
};

const padded = (number: number): string => String(number).padStart(2, '0');
