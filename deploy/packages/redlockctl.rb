# The Homebrew formula; scripts/release fills in the version and the checksums.
class Redlockctl < Formula
  desc "Operations console and restart guard for Redlock locks on Redis"
  homepage "https://github.com/redlockctl/redlockctl"
  version "@VERSION@"
  license "MIT"

  base = "https://github.com/redlockctl/redlockctl/releases/download/v@VERSION@/redlockctl_@VERSION@"
  on_macos do
    on_arm do
      url "#{base}_darwin_arm64.tar.gz"
      sha256 "@DARWIN_ARM64@"
    end
    on_intel do
      url "#{base}_darwin_amd64.tar.gz"
      sha256 "@DARWIN_AMD64@"
    end
  end
  on_linux do
    on_arm do
      url "#{base}_linux_arm64.tar.gz"
      sha256 "@LINUX_ARM64@"
    end
    on_intel do
      url "#{base}_linux_amd64.tar.gz"
      sha256 "@LINUX_AMD64@"
    end
  end

  def install
    bin.install "redlockctl"
    man1.install Dir["man/*.1.gz"]
    bash_completion.install "completions/bash" => "redlockctl"
    zsh_completion.install "completions/zsh" => "_redlockctl"
    fish_completion.install "completions/fish" => "redlockctl.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/redlockctl version")
  end
end
