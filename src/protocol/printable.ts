/**
 * Replaces what could start a line, move the cursor, set the title or reverse text in a log: by its picture (`␛`) or
 * `�`.
 */
export const printable = (text: string): string =>
  text
    .replace(/[\u0000-\u001f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
    .replace(/\u007f/g, '␡')
    .replace(/[\u0080-\u009f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g, '�');
