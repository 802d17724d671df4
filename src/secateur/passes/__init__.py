"""One technique, one module, one public function."""
