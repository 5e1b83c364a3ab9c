"""The page of a study of private estimates."""
