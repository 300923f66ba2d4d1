/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { build } from 'esbuild';
import { documents, filesIn, read, root } from '../docs/fences.js';

interface Entry {
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
}

interface Lockfile {
  readonly lockfileVersion: number;
  readonly packages: Readonly<Record<string, Entry>>;
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly files: readonly string[];
}

const entriesOf = ({ packages }: Lockfile) => Object.entries(packages).filter(([path]) => path !== '');

/** Returns what's wrong with the source or the hash of an entry. */
const problemOf = ([path, { integrity, resolved, link }]: [string, Entry]): string | undefined => {
  if (link) return `${path} is a link`;
  if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '')) return `${path} has no sha512`;
  // An entry without an address comes from the registry that the installer has configured.
  return resolved !== undefined && !resolved.startsWith('https://') ? `${path} does not come over https` : undefined;
};

const lockfiles = [
  '',
  'examples/nestjs-angular/',
  'reliability/mutation/',
  'test/apps/angular-20/',
  'test/apps/angular-22/',
  'test/apps/bundlers/',
  'test/apps/typescript/',
  'test/transport/undici-8/',
];

describe.each(lockfiles.map((folder) => `${folder}package-lock.json`))('%s', (file) => {
  const lockfile = JSON.parse(read(file)) as Lockfile;

  it('has version 3, a hash for every package, and only https downloads', () => {
    expect(lockfile.lockfileVersion).toBe(3);
    expect(entriesOf(lockfile).length).toBeGreaterThan(0);
    // The app gets this package itself from a separate tarball or from the registry.
    const isThisPackage = ([path]: [string, Entry]) => path === 'node_modules/rx-trade-feed';
    const others = entriesOf(lockfile).filter((entry) => !isThisPackage(entry));
    expect(others.flatMap((entry) => problemOf(entry) ?? [])).toEqual([]);
  });
});

describe('the installation of a user', () => {
  const lockfile = JSON.parse(read('package-lock.json')) as Lockfile;
  const manifest = JSON.parse(read('package.json')) as Manifest;
  const installed = entriesOf(lockfile).filter(([, { dev, devOptional }]) => !dev && !devOptional);

  it('runs no install script, neither this package nor its dependencies', () => {
    expect(installed.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
    const hooks = ['preinstall', 'install', 'postinstall', 'prepare'];
    expect(Object.keys(manifest.scripts).filter((name) => hooks.includes(name))).toEqual([]);
  });

  it('has eight packages, one of which has five dependencies by one maintainer', () => {
    const names = [
      ...['@standard-schema/spec', 'commander', 'eventsource-parser', 'fp-ts'],
      ...['fs-native-extensions', 'io-ts', 'undici', 'ws'],
    ];
    // They find the binary of fs-native-extensions for the system.
    const further = ['bare-addon-resolve', 'bare-module-resolve', 'bare-semver', 'require-addon', 'which-runtime'];
    expect(Object.keys(manifest.dependencies)).toEqual(names);
    expect(installed.map(([path]) => path)).toEqual(
      [...names, ...further].sort().map((name) => `node_modules/${name}`),
    );
    const ownDependencies = installed.flatMap(([path, { dependencies = {} }]) =>
      path === 'node_modules/fs-native-extensions' || !names.some((name) => path === `node_modules/${name}`)
        ? []
        : Object.keys(dependencies),
    );
    expect(ownDependencies).toEqual([]);
  });

  it('contains only the command, the built files, the guides, the README and the license', () => {
    const allowed = /^(?:bin|dist|README\.md|LICENSE|!?docs\/.*)$/;
    expect(manifest.files.filter((pattern) => !allowed.test(pattern))).toEqual([]);
  });
});

/** What secrets look like in source files, with an example. */
const secrets: Readonly<Record<string, readonly [RegExp, example: string]>> = {
  'a private key': [
    /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s*[A-Za-z0-9+/]{16}/,
    `-----BEGIN EC PRIVATE KEY-----\n${'MHcCAQEEIA'.repeat(3)}`,
  ],
  'a platform token': [
    /\b(?:ghp|gho|ghs|github_pat|npm|glpat|xox[abp]|sk_live|rk_live)[_-][A-Za-z0-9_]{16,}/,
    `ghp_${'a1B2'.repeat(9)}`,
  ],
  'a cloud key': [/\bAKIA[0-9A-Z]{16}\b/, `AKIA${'Q7'.repeat(8)}`],
  // The guides write `password` as a placeholder.
  'an address with a password': [
    /\b[a-z]+:\/\/[^\s/:@'"`]+:(?!password@)[^\s/:@'"`]+@/,
    'https://user:word@example.com/',
  ],
  'a JSON Web Token': [/\beyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/, `eyJ${'a'.repeat(20)}.${'b'.repeat(20)}`],
};

describe('the published sources', () => {
  it('contain no key, no token and no address with a password', () => {
    const files = [...filesIn('src', '.ts'), ...documents(), 'CHANGELOG.md', 'package.json'];
    expect(files.length).toBeGreaterThan(100);
    const texts = files.map((file) => [file, read(file)] as const);
    for (const [what, [pattern, example]] of Object.entries(secrets)) {
      expect(example).toMatch(pattern);
      const found = texts.filter(([, text]) => pattern.test(text)).map(([file]) => `${file}: ${what}`);
      expect(found).toEqual([]);
    }
  });
});

// A page's code can't contain a key by accident: it has no option for one and no request that sends one.
it.each(['browser', 'angular'])(
  'a page with rx-trade-feed/%s cannot request a ticket, and has no place for a key',
  async (entry) => {
    const { outputFiles } = await build({
      absWorkingDir: root,
      entryPoints: [`src/${entry}/index.ts`],
      ...{ bundle: true, minify: true, format: 'esm', platform: 'browser', target: 'es2022', write: false },
      external: ['rxjs', 'rxjs/*', '@angular/core'],
    });
    const text = outputFiles[0]?.text ?? '';
    expect(text).toContain('relay-refused');
    expect(text).not.toMatch(/x-api-key|TRADE_FEED_|wss\/tickets|bearer|WebSocket/i);
  },
);
