interface NativeLock {
  /** `false` when another descriptor has the lock. Throws when the file system does not support locks. */
  readonly tryLock: (fd: number, offset: number, length: number) => boolean;
}

/**
 * Loads the native package, or throws without one for this system. CommonJS, because `require` loads it synchronously
 * and only for who appends; `createRequire` needs `import.meta`, a syntax error where bundled as CommonJS.
 */
const loadNativeLock = (): NativeLock => {
  try {
    return require('fs-native-extensions') as NativeLock;
  } catch (error) {
    // On Alpine its loader looks for a binary that the package does not contain, yet the one for glibc loads there.
    if (process.platform !== 'linux' || (error as NodeJS.ErrnoException).code !== 'ADDON_NOT_FOUND') throw error;
    return withoutLoader(require(`fs-native-extensions/prebuilds/linux-${process.arch}/fs-native-extensions.node`));
  }
};

type Binding = { readonly tryLock: (fd: number, offset: number, length: number, isExclusive: boolean) => void };

// What `index.js` of the package does.
const withoutLoader = (binding: unknown): NativeLock => ({
  tryLock: (fd, offset, length) => {
    try {
      (binding as Binding).tryLock(fd, offset, length, true);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;
      throw error;
    }
  },
});

// @ts-expect-error -- Only `export =` keeps the type in a CommonJS module; tsc, swc and esbuild compile it.
export = loadNativeLock;
